// The MCS lock with compare-and-swap for five processes, with the steps of ../../mcs_lock.m. NOBODY is the null pointer.
#define PROCESSES 5
#define NOBODY 255

bool locked[PROCESSES];
byte next[PROCESSES];
byte tail = NOBODY;
byte inside;

proctype process(byte me) {
    byte before = NOBODY;
idle:
    next[me] = NOBODY;
    d_step { before = tail; tail = me };
    if
    :: d_step { before == NOBODY -> inside++ }; goto critical
    :: before != NOBODY
    fi;
    locked[me] = true;
    d_step { next[before] = me; before = NOBODY };
    d_step { !locked[me] -> inside++ };
critical:
    atomic { assert(inside == 1); inside-- };
    if
    :: next[me] == NOBODY
    :: next[me] != NOBODY -> goto unlocking
    fi;
    if
    :: d_step { tail == me -> tail = NOBODY }; goto idle
    :: tail != me
    fi;
    next[me] != NOBODY;
unlocking:
    atomic { assert(locked[next[me]]); locked[next[me]] = false };
    goto idle
}

init {
    byte i = 0;
    d_step {
        do
        :: i < PROCESSES -> next[i] = NOBODY; i++
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
