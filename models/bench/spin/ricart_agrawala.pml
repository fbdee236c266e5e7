// Mutual exclusion by messages for three nodes, with the steps of ../../ricart_agrawala.m. A request is stored as its
// clock plus one.
#define NODES 3
#define VISITS 2
#define IDLE 0
#define WAITING 1
#define CRITICAL 2
#define AT(from, to) (from) * NODES + (to)

byte at[NODES];
byte highest[NODES];
byte own[NODES];
byte left[NODES];
bool granted[NODES * NODES];
bool deferred[NODES * NODES];
byte request[NODES * NODES];
bool answer[NODES * NODES];

#define NOTHING_SENT(n) (request[AT(n, 0)] == 0 && request[AT(n, 1)] == 0 && request[AT(n, 2)] == 0)
#define GRANTED(n, m) (m == n || granted[AT(n, m)])
#define RESTS(n) (at[n] == IDLE && left[n] == 0 && NOTHING_SENT(n) && !answer[AT(n, 0)] && !answer[AT(n, 1)] && !answer[AT(n, 2)])

inline send_request(n, m) {
    if
    :: m != n -> request[AT(n, m)] = own[n] + 1
    :: else
    fi
}

inline answer_deferred(n, m) {
    granted[AT(n, m)] = false;
    if
    :: deferred[AT(n, m)] -> deferred[AT(n, m)] = false; answer[AT(n, m)] = true
    :: else
    fi
}

inline take_request(n, m) {
    clock = request[AT(m, n)] - 1;
    if
    :: clock > highest[n] -> highest[n] = clock
    :: else
    fi;
    if
    :: at[n] == CRITICAL || (at[n] == WAITING && (own[n] < clock || (own[n] == clock && n < m))) ->
        deferred[AT(n, m)] = true
    :: else -> answer[AT(n, m)] = true
    fi;
    request[AT(m, n)] = 0;
    clock = 0
}

inline take_answer(n, m) {
    assert(at[n] == WAITING);
    answer[AT(m, n)] = false;
    granted[AT(n, m)] = true
}

proctype node(byte me) {
    byte clock;
    do
    :: d_step { at[me] == IDLE && left[me] > 0 && NOTHING_SENT(me) ->
        own[me] = highest[me] + 1;
        highest[me] = own[me];
        left[me]--;
        send_request(me, 0);
        send_request(me, 1);
        send_request(me, 2);
        at[me] = WAITING }
    :: d_step { at[me] == WAITING && GRANTED(me, 0) && GRANTED(me, 1) && GRANTED(me, 2) ->
        assert(at[0] != CRITICAL && at[1] != CRITICAL && at[2] != CRITICAL);
        at[me] = CRITICAL }
    :: d_step { at[me] == CRITICAL ->
        answer_deferred(me, 0);
        answer_deferred(me, 1);
        answer_deferred(me, 2);
        own[me] = 0;
        at[me] = IDLE }
    :: d_step { request[AT(0, me)] != 0 -> take_request(me, 0) }
    :: d_step { request[AT(1, me)] != 0 -> take_request(me, 1) }
    :: d_step { request[AT(2, me)] != 0 -> take_request(me, 2) }
    :: d_step { answer[AT(0, me)] -> take_answer(me, 0) }
    :: d_step { answer[AT(1, me)] -> take_answer(me, 1) }
    :: d_step { answer[AT(2, me)] -> take_answer(me, 2) }
    od
}

init {
    byte i;
    d_step {
        do
        :: i < NODES -> left[i] = VISITS; i++
        :: else -> break
        od;
        i = 0
    };
    atomic {
        run node(0);
        run node(1);
        run node(2)
    };
    do
    :: d_step { RESTS(0) && RESTS(1) && RESTS(2) ->
        left[0] = VISITS; left[1] = VISITS; left[2] = VISITS;
        highest[0] = 0; highest[1] = 0; highest[2] = 0 }
    od
}
