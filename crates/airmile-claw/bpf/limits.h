/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Limits on the effect of feedback, whatever a client reports and however often.
 *
 * No kernel helper is called here: the tests of src/kernel/limits.rs compile this file
 * for user space. The core's counterparts are `Limits`, `claw::trust` and `claw::losses`.
 */
#ifndef AIRMILE_CLAW_LIMITS_H
#define AIRMILE_CLAW_LIMITS_H

#define LEAST_WINDOW 2
/* Consecutive failed round trips before trust is withdrawn (4.4: three). */
#define FAILED_ROUNDS 3
/* Losses under a client's window that are not the radio's, each within LOSSES_NS of the
 * previous one, before trust is withdrawn (chosen here: as for round trips). */
#define MOST_LOSSES 3
#define LOSSES_NS 10000000000ULL
/* With a standing queue a single loss is enough, and trust is withdrawn for this multiple:
 * a queue does not overflow while resources are free (chosen here). */
#define FULL_QUEUE_TIMES 10
/* Maximum multiple of the distrust time (chosen here). */
#define MOST_TIMES 64
/* Longer round trips count as this (chosen here: no product overflows). */
#define MOST_RTT_NS 60000000000ULL
/* Without an RTT sample yet: 100 ms. */
#define USUAL_RTT_NS 100000000ULL

/* State of a client, over all of its connections. */
struct client {
    s32 busy;        /* connections with data in flight */
    u32 born;        /* distinguishes the entry from an earlier one */
    u64 until_ns;    /* its feedback is ignored until then */
    u64 lost_ns;     /* of the last loss that counts against it */
    u32 losses;
    u32 times;
};

/* A round trip of a connection under a client's window. */
struct round {
    u64 began_ns;
    u32 from;    /* packets delivered when it began */
    u32 ends_at; /* packets delivered that end it */
    u32 failed;
    u32 filled;  /* the window was in use to three quarters */
};

/* The maximum window of a client, in bytes. */
static inline __attribute__((always_inline)) u64 most_bytes(u64 cap_bytes, u64 cap_bytes_per_s,
                                                            u64 rtt_ns)
{
    u64 rtt = rtt_ns ? rtt_ns : USUAL_RTT_NS, of_rate;

    if (rtt > MOST_RTT_NS)
        rtt = MOST_RTT_NS;
    /* In us and kB/s: 10^9 kB/s and a minute do not overflow. */
    of_rate = cap_bytes_per_s / 1000 * (rtt / 1000) / 1000;
    return of_rate < cap_bytes ? of_rate : cap_bytes;
}

static inline __attribute__((always_inline)) u32 least(u32 packets)
{
    return packets < LEAST_WINDOW ? LEAST_WINDOW : packets;
}

/* A connection's share of a client's window, in packets, among `busy` connections. */
static inline __attribute__((always_inline)) u32 part_packets(u64 w_bytes, u64 most, u32 mss,
                                                              s32 busy)
{
    u64 bytes = w_bytes < most ? w_bytes : most, packets;

    if (!mss)
        return LEAST_WINDOW;
    packets = bytes / mss / (busy > 1 ? (u32)busy : 1);
    return least(packets > 0x7fffffff ? 0x7fffffff : (u32)packets);
}

/* A queue is standing if the RTT exceeds its minimum by a half. */
static inline __attribute__((always_inline)) int is_queued(u64 rtt_ns, u64 min_rtt_ns)
{
    return min_rtt_ns && rtt_ns * 2 > min_rtt_ns * 3;
}

/* Begins a round trip; the caller resets the count of failures. */
static inline __attribute__((always_inline)) void begin_round(struct round *r, u64 now_ns,
                                                              u32 delivered, u32 in_flight)
{
    r->began_ns = now_ns;
    r->from = delivered;
    r->ends_at = delivered + in_flight;
    r->filled = 0;
}

/*
 * Processes an ACK under a client's window of `cwnd` packets. Returns true if the window was
 * not delivered for FAILED_ROUNDS: less than half in a minimum RTT, with a standing queue.
 */
static inline __attribute__((always_inline)) int is_undelivered(struct round *r, u64 now_ns,
                                                                u32 delivered, u32 in_flight,
                                                                u32 acked, u32 cwnd, u64 rtt_ns,
                                                                u64 min_rtt_ns)
{
    u64 took, got;
    int is_short, fails;

    if (!r->began_ns) {
        begin_round(r, now_ns, delivered, in_flight);
        return 0;
    }
    if ((u64)in_flight + acked >= cwnd - cwnd / 4)
        r->filled = 1;
    if ((s32)(delivered - r->ends_at) < 0 || now_ns <= r->began_ns)
        return 0;
    took = (now_ns - r->began_ns) / 1000;
    got = delivered - r->from;
    is_short = got * (min_rtt_ns / 1000) * 2 < (u64)cwnd * took;
    /* A window that the server does not fill carries no information. */
    fails = is_short && r->filled && is_queued(rtt_ns, min_rtt_ns);
    r->failed = fails ? r->failed + 1 : 0;
    begin_round(r, now_ns, delivered, in_flight);
    if (r->failed < FAILED_ROUNDS)
        return 0;
    r->failed = 0;
    return 1;
}

static inline __attribute__((always_inline)) int is_believed(const struct client *c, u64 now_ns)
{
    return now_ns >= c->until_ns;
}

/* Withdraws trust for a time, doubled each time. */
static inline __attribute__((always_inline)) void withdraw(struct client *c, u64 now_ns,
                                                           u64 distrust_ns)
{
    u32 times = c->times ? c->times : 1;

    /* Several connections of a client may detect it together: counted once. */
    if (!is_believed(c, now_ns))
        return;
    if (times > MOST_TIMES)
        times = MOST_TIMES;
    c->until_ns = now_ns + distrust_ns * times;
    c->times = times * 2;
    c->losses = 0;
}

/* A loss under a client's window that is not the radio's. */
static inline __attribute__((always_inline)) void count_loss(struct client *c, u64 now_ns,
                                                             u64 distrust_ns, int queued)
{
    u32 before = now_ns - c->lost_ns <= LOSSES_NS ? c->losses : 0;

    c->lost_ns = now_ns;
    c->losses = before + 1;
    if (queued)
        withdraw(c, now_ns, distrust_ns * FULL_QUEUE_TIMES);
    else if (before + 1 >= MOST_LOSSES)
        withdraw(c, now_ns, distrust_ns);
}

/*
 * The part of `acked` packets, under a window of `in_use`, that a window of `own` would have
 * had acknowledged: W_cubic grows as it would by itself. `rest` keeps fractions of a packet.
 */
static inline __attribute__((always_inline)) u32 own_acked(u32 acked, u32 own, u32 in_use,
                                                           u64 *rest)
{
    u64 sum;

    if (own >= in_use)
        return acked;
    sum = *rest % in_use + (u64)acked * own;
    *rest = sum % in_use;
    return (u32)(sum / in_use);
}

/*
 * Whether a loss is the radio's (4.3.2) and needs no reduction: the radio lost packets since
 * the last loss and recently, its queue did not; packets are lost and not marked (RFC 3168);
 * there is no standing queue, which would be the simpler cause; and the window is one that a
 * client may have.
 */
static inline __attribute__((always_inline)) int is_radios(s32 radio_since, s32 queue_since,
                                                           u64 grown_ns, u64 now_ns, u64 srtt_ns,
                                                           u64 rtt_ns, u64 min_rtt_ns,
                                                           u32 lost_packets, u64 window_bytes,
                                                           u64 most)
{
    if (radio_since <= 0 || queue_since || !grown_ns || now_ns - grown_ns > 2 * srtt_ns)
        return 0;
    return lost_packets && !is_queued(rtt_ns, min_rtt_ns) && window_bytes <= most;
}

#endif
