// Peterson's mutual exclusion for five processes, with the steps of ../../filter_5.m.
#define PROCESSES 5
#define NOBODY 255

byte reached[PROCESSES];
byte last[PROCESSES];
byte inside;

#define BELOW(other) (me == other || reached[other] < reached[me])
#define PASSES (last[reached[me]] != me || BELOW(0) && BELOW(1) && BELOW(2) && BELOW(3) && BELOW(4))

proctype process(byte me) {
idle:
    reached[me] = 1;
arrived:
    last[reached[me]] = me;
waiting:
    if
    :: d_step { PASSES && reached[me] == PROCESSES - 1 -> inside++ }; goto critical
    :: d_step { PASSES && reached[me] < PROCESSES - 1 -> reached[me]++ }; goto arrived
    fi;
critical:
    atomic { assert(inside == 1); inside--; reached[me] = 0 };
    goto idle
}

init {
    byte i = 0;
    d_step {
        do
        :: i < PROCESSES -> last[i] = NOBODY; i++
        :: else -> break
        od;
        i = 0
    };
    atomic {
        run process(0);
        run process(1);
        run process(2);
        run process(3);
        run process(4)
    }
}
