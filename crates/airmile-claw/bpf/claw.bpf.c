// SPDX-License-Identifier: Apache-2.0 OR MIT
//
// CLAW for the kernel's TCP (MobiSys 2017, Algorithm 1).
//
// `claw` is Cubic, from the kernel's own functions, on a window of its own (W_cubic), plus
// the window that the client's radio allows. Feedback comes from user space (`peers`, by
// address) or from an option on the client's ACKs (`state.feedback`). Its age is checked
// here, so that a killed loader leaves plain Cubic behind.
//
// User space interprets reports as far as possible: since when a cell is full, and which
// values are in force. Only the comparison with the round-trip time is made here, as only
// TCP knows it.

#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

// MIT is one of its licences, which the kernel accepts as compatible with its own.
char LICENSE[] SEC("license") = "Dual MIT/GPL";

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;

#include "limits.h"

#define AF_INET 2
#define AF_INET6 10
#define IPPROTO_TCP 6
#define TCP_CONGESTION 13
#define TCP_CA_DISORDER 1
#define TCP_CA_LOSS 4
#define CA_EVENT_TX_START 0
#define PACING_NONE 0
#define PACING_NEEDED 1

// Only the members used here; the loader resolves their offsets (CO-RE).
struct in6_addr {
    union {
        __be32 u6_addr32[4];
    } in6_u;
} __attribute__((preserve_access_index));

struct sock_common {
    unsigned short skc_family;
    __be32 skc_daddr;
    struct in6_addr skc_v6_daddr;
} __attribute__((preserve_access_index));

struct sock {
    struct sock_common __sk_common;
    u32 sk_pacing_status;
} __attribute__((preserve_access_index));

struct inet_sock {
    struct sock sk;
} __attribute__((preserve_access_index));

struct inet_connection_sock {
    struct inet_sock icsk_inet;
} __attribute__((preserve_access_index));

struct minmax_sample {
    u32 t;
    u32 v;
} __attribute__((preserve_access_index));

struct minmax {
    struct minmax_sample s[3];
} __attribute__((preserve_access_index));

struct tcp_sock {
    struct inet_connection_sock inet_conn;
    u32 snd_cwnd;
    u32 srtt_us;
    u32 snd_ssthresh;
    u32 mss_cache;
    u32 packets_out;
    u32 delivered;
    u32 lost_out;
    struct minmax rtt_min;
} __attribute__((preserve_access_index));

struct ack_sample {
    u32 pkts_acked;
    s32 rtt_us;
} __attribute__((preserve_access_index));

enum tcp_ca_event { EVENT_UNUSED };

struct tcp_congestion_ops {
    u32 (*ssthresh)(struct sock *);
    void (*cong_avoid)(struct sock *, u32, u32);
    void (*set_state)(struct sock *, u8);
    void (*cwnd_event)(struct sock *, enum tcp_ca_event);
    void (*pkts_acked)(struct sock *, const struct ack_sample *);
    u32 (*undo_cwnd)(struct sock *);
    char name[16];
    u32 flags;
    void (*init)(struct sock *);
    void (*release)(struct sock *);
} __attribute__((preserve_access_index));

extern void cubictcp_init(struct sock *sk) __ksym;
extern void cubictcp_cong_avoid(struct sock *sk, u32 ack, u32 acked) __ksym;
extern u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym;
extern void cubictcp_state(struct sock *sk, u8 new_state) __ksym;
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym;
extern u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

// The following is shared with src/kernel/maps.rs.

struct address {
    __be32 word[4]; // IPv4 as ::ffff:a.b.c.d
};

struct config {
    u64 netns_cookie;      // 0: all namespaces of the cgroup
    u64 cap_bytes;         // cap on a client's window
    u64 cap_bytes_per_s;
    u64 stale_ns;
    u64 idle_hold_ns;
    u64 distrust_ns;
    u32 stale_rounds;
    u32 full_rounds;
    u32 dest[4];           // network of the clients
    u32 mask[4];
    u32 probe_local_port;  // connection from which a loader learns its namespace
    u32 probe_remote_port;
    u32 serves;            // enables `claw` and reads options
    u32 reports;           // writes options
    u32 measures;          // measures the time per ACK
    u32 unused;
};

struct feedback {
    u64 w_bytes;
    u64 received_ns;   // monotonic clock; 0: no feedback
    u64 in_force_ns;   // last report that was not idle
    u64 full_since_ns; // 0: not full
    u32 radio_losses;
    u32 queue_losses;
    u32 bottleneck; // 0: the cell
    u32 idle;
};

struct option {
    u8 bytes[8];
    u64 stamp_ns;
};

// State of a connection.
struct state {
    u32 w_cubic;
    u32 counted_in; // `born` of the client's entry that counts this as busy; 0: none
    u32 judged_radio;
    u32 judged_queue;
    u32 seen_radio;
    u32 last_flags; // last option's flags; bit 8: there was one
    u32 in_use;     // the client's window
    u32 held;       // W_cubic when the cell became full
    u32 waits;      // during two round trips after that
    u32 before_loss;
    u32 recovers;   // recovers from a loss that is not the radio's
    u32 excused;    // the last loss was the radio's
    u32 rtt_us;     // RTT of the last packet
    u32 spent_ns;   // time in BPF for the current ACK
    u64 own_rest;   // remainder of ACKs, in parts of W_cubic
    u64 grown_ns;
    u64 reduced_until_ns;
    u64 reduced_to;
    u64 full_ns;    // since when the cell is full; `held` is from then
    struct round round;
    struct feedback feedback; // by options
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct config);
} settings SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 16384);
    __type(key, struct address);
    __type(value, struct feedback);
} peers SEC(".maps");

// A client's connections, and whether it is trusted.
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 16384);
    __type(key, struct address);
    __type(value, struct client);
} clients SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, struct option);
} own_report SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_SK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, s32);
    __type(value, struct state);
} states SEC(".maps");

// Histogram of the time per ACK in steps of 16 ns; the last bucket takes all longer times.
struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 256);
    __type(key, u32);
    __type(value, u64);
} ack_ns SEC(".maps");

// 0: the cookie that a probe found; 1: options read; 2: options written; 3: ACKs without
// room for an option; 4: ACKs with a client's window in use; 5: all ACKs; 6: connections;
// 7: times that trust in a client was withdrawn; 8: losses excused as the radio's; 9: the
// largest window of a client in bytes.
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 10);
    __type(key, u32);
    __type(value, u64);
} counts SEC(".maps");

static __always_inline void count(u32 which)
{
    u64 *n = bpf_map_lookup_elem(&counts, &which);
    if (n)
        __sync_fetch_and_add(n, 1);
}

static __always_inline struct config *configured(void)
{
    u32 zero = 0;
    return bpf_map_lookup_elem(&settings, &zero);
}

static __always_inline void address_of(struct sock *sk, struct address *to)
{
    if (sk->__sk_common.skc_family == AF_INET6) {
        to->word[0] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[0];
        to->word[1] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[1];
        to->word[2] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[2];
        to->word[3] = sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[3];
        return;
    }
    to->word[0] = 0;
    to->word[1] = 0;
    to->word[2] = bpf_htonl(0xffff);
    to->word[3] = sk->__sk_common.skc_daddr;
}

static __always_inline u64 srtt_ns(struct tcp_sock *tp)
{
    return (u64)(tp->srtt_us >> 3) * 1000;
}

static __always_inline u64 min_rtt_ns(struct tcp_sock *tp)
{
    return (u64)tp->rtt_min.s[0].v * 1000;
}

// Tracks whether a connection has data in flight: such connections share a client's window.
// One that could not be counted gets no share, so that the sum never exceeds the window.
static __always_inline void is_busy(struct sock *sk, struct state *s, u32 now)
{
    struct client *client, fresh = {};
    struct address to;

    address_of(sk, &to);
    client = bpf_map_lookup_elem(&clients, &to);
    if (client && s->counted_in == client->born) {
        if (!now) {
            __sync_fetch_and_add(&client->busy, -1);
            s->counted_in = 0;
        }
        return;
    }
    // The entry that it was counted in was evicted.
    s->counted_in = 0;
    if (!now)
        return;
    if (client) {
        __sync_fetch_and_add(&client->busy, 1);
        s->counted_in = client->born;
        return;
    }
    fresh.busy = 1;
    fresh.born = (u32)bpf_ktime_get_ns() | 1;
    if (!bpf_map_update_elem(&clients, &to, &fresh, BPF_NOEXIST))
        s->counted_in = fresh.born;
}

// Feedback for a socket's client: from its options if there are any, otherwise by address.
static __always_inline struct feedback *feedback_of(struct state *s, struct address *to)
{
    if (s->feedback.received_ns)
        return &s->feedback;
    return bpf_map_lookup_elem(&peers, to);
}

static __always_inline int is_stale(struct feedback *t, struct config *c, u64 now, u64 rtt)
{
    u64 fresh = rtt * c->stale_rounds;

    if (fresh < c->stale_ns)
        fresh = c->stale_ns;
    if (!t->received_ns || now - t->in_force_ns > c->idle_hold_ns)
        return 1;
    return !t->idle && now - t->received_ns > fresh;
}

static __always_inline void note_losses(struct state *s, struct feedback *t, u64 now)
{
    if (t->radio_losses == s->seen_radio)
        return;
    s->seen_radio = t->radio_losses;
    s->grown_ns = now;
}

// Algorithm 1, lines 8 to 16: the current window; 0: Cubic's.
static __always_inline u32 client_window(struct sock *sk, struct state *s, struct config *c)
{
    struct tcp_sock *tp = (struct tcp_sock *)sk;
    u64 now = bpf_ktime_get_ns(), rtt = srtt_ns(tp);
    struct client *client;
    struct address to;
    struct feedback *t;
    u32 window;

    s->waits = 0;
    address_of(sk, &to);
    t = feedback_of(s, &to);
    if (!t || is_stale(t, c, now, rtt))
        return 0;
    note_losses(s, t, now);
    client = bpf_map_lookup_elem(&clients, &to);
    if (!client || !s->counted_in || t->bottleneck || !is_believed(client, now))
        return 0;
    // The cap uses the minimum RTT: a queue does not raise it.
    window = part_packets(t->w_bytes, most_bytes(c->cap_bytes, c->cap_bytes_per_s, min_rtt_ns(tp)),
                          tp->mss_cache, client->busy);
    // Several connections may belong to several phones behind a NAT: a share must not be
    // below Cubic's window.
    if (client->busy > 1 && window < s->w_cubic)
        window = s->w_cubic;
    if (t->full_since_ns) {
        // 4.3.1: for two round trips the window stays at the old W_cubic; meanwhile W_cubic
        // grows by the incoming ACKs, and applies after that.
        if (s->full_ns != t->full_since_ns) {
            s->full_ns = t->full_since_ns;
            s->held = s->w_cubic;
        }
        s->waits = now - t->full_since_ns < rtt * c->full_rounds;
        if (s->waits && window < s->held)
            window = s->held;
        if (!s->waits && window < s->w_cubic)
            window = s->w_cubic;
    }
    if ((s->recovers || now < s->reduced_until_ns) && window > s->reduced_to)
        window = least((u32)s->reduced_to);
    return window;
}

// Updates the largest window. Of concurrent updates one may be lost, until the next ACK.
static __always_inline void note_largest(struct tcp_sock *tp, u32 window)
{
    u64 bytes = (u64)window * tp->mss_cache, *largest;
    u32 which = 9;

    largest = bpf_map_lookup_elem(&counts, &which);
    if (largest && *largest < bytes)
        *largest = bytes;
}

SEC("struct_ops")
void BPF_PROG(claw_init, struct sock *sk)
{
    struct tcp_sock *tp = (struct tcp_sock *)sk;
    struct state *s;

    cubictcp_init(sk);
    s = bpf_sk_storage_get(&states, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
    if (s)
        s->w_cubic = least(tp->snd_cwnd);
    count(6);
}

SEC("struct_ops")
void BPF_PROG(claw_release, struct sock *sk)
{
    struct state *s = bpf_sk_storage_get(&states, sk, 0, 0);

    if (s)
        is_busy(sk, s, 0);
}

SEC("struct_ops")
void BPF_PROG(claw_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
    struct tcp_sock *tp = (struct tcp_sock *)sk;
    struct config *c = configured();
    struct state *s = bpf_sk_storage_get(&states, sk, 0, 0);
    u64 began, *n;
    u32 window, own, in_use = tp->snd_cwnd;

    if (!s || !c) {
        cubictcp_cong_avoid(sk, ack, acked);
        return;
    }
    began = c->measures ? bpf_ktime_get_ns() : 0;
    is_busy(sk, s, tp->packets_out > 0);
    // W_cubic grows only while it is not above the window in use: the kernel treats any
    // full window as window-limited, and W_cubic would grow without bound. It grows no
    // faster than with a window of its own, so that feedback does not raise its starting
    // point.
    own = own_acked(acked, s->w_cubic, in_use, &s->own_rest);
    tp->snd_cwnd = s->w_cubic;
    if (own && (s->w_cubic <= in_use || s->waits))
        cubictcp_cong_avoid(sk, ack, own);
    s->w_cubic = least(tp->snd_cwnd);
    window = client_window(sk, s, c);
    s->in_use = window > 0;
    tp->snd_cwnd = window ? window : s->w_cubic;
    // Pacing spreads windows that jump; an existing pacing rate is kept.
    if (window && sk->sk_pacing_status == PACING_NONE)
        sk->sk_pacing_status = PACING_NEEDED;
    count(5);
    if (window) {
        count(4);
        // Cubic's own window may be larger.
        if (window > s->w_cubic)
            note_largest(tp, window);
    }
    if (c->measures) {
        u32 step = (u32)((bpf_ktime_get_ns() - began + s->spent_ns) >> 4);

        s->spent_ns = 0;
        if (step > 255)
            step = 255;
        n = bpf_map_lookup_elem(&ack_ns, &step);
        if (n)
            *n += 1;
    }
}

SEC("struct_ops")
u32 BPF_PROG(claw_ssthresh, struct sock *sk)
{
    struct tcp_sock *tp = (struct tcp_sock *)sk;
    struct config *c = configured();
    struct state *s = bpf_sk_storage_get(&states, sk, 0, 0);
    u64 now = bpf_ktime_get_ns(), rtt = srtt_ns(tp), most;
    u32 in_use = tp->snd_cwnd, reduced;
    struct client *client;
    struct address to;
    struct feedback *t;

    if (!s || !c)
        return cubictcp_recalc_ssthresh(sk);
    s->before_loss = s->w_cubic;
    address_of(sk, &to);
    t = feedback_of(s, &to);
    client = bpf_map_lookup_elem(&clients, &to);
    if (t && client && is_believed(client, now) && !is_stale(t, c, now, rtt)) {
        s32 radio = (s32)(t->radio_losses - s->judged_radio);
        s32 queue = (s32)(t->queue_losses - s->judged_queue);

        note_losses(s, t, now);
        s->judged_radio = t->radio_losses;
        s->judged_queue = t->queue_losses;
        most = most_bytes(c->cap_bytes, c->cap_bytes_per_s, min_rtt_ns(tp));
        if (client->busy > 1)
            most /= (u32)client->busy;
        if (is_radios(radio, queue, s->grown_ns, now, rtt, (u64)s->rtt_us * 1000, min_rtt_ns(tp),
                      tp->lost_out, (u64)in_use * tp->mss_cache, most)) {
            count(8);
            s->excused = 1;
            return in_use;
        }
        if (s->in_use) {
            count_loss(client, now, c->distrust_ns,
                       is_queued((u64)s->rtt_us * 1000, min_rtt_ns(tp)));
            if (!is_believed(client, now))
                count(7);
        }
    }
    s->excused = 0;
    // Cubic reduces its own window: a client's window does not raise the starting point.
    if (s->w_cubic < in_use)
        tp->snd_cwnd = s->w_cubic;
    reduced = least(cubictcp_recalc_ssthresh(sk));
    tp->snd_cwnd = in_use;
    s->w_cubic = reduced;
    s->held = reduced;
    s->reduced_to = reduced;
    s->recovers = 1;
    return reduced;
}

SEC("struct_ops")
void BPF_PROG(claw_set_state, struct sock *sk, u8 new_state)
{
    struct tcp_sock *tp = (struct tcp_sock *)sk;
    struct state *s = bpf_sk_storage_get(&states, sk, 0, 0);

    cubictcp_state(sk, new_state);
    if (s && new_state == TCP_CA_LOSS) {
        // The cause of a timeout is unknown: it is never excused (Cubic's factor,
        // 717/1024).
        if (s->excused)
            tp->snd_ssthresh = least((u32)((u64)s->before_loss * 717 >> 10));
        s->excused = 0;
        // After a timeout, restart from the kernel's window.
        s->w_cubic = tp->snd_cwnd ? tp->snd_cwnd : 1;
        s->reduced_to = s->w_cubic;
        s->held = s->w_cubic;
        s->recovers = 1;
    } else if (s && s->recovers && new_state <= TCP_CA_DISORDER) {
        // The window is not queried in recovery: the reduced one holds for a round trip
        // after it.
        s->recovers = 0;
        s->reduced_until_ns = bpf_ktime_get_ns() + srtt_ns(tp);
    }
}

SEC("struct_ops")
void BPF_PROG(claw_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
    struct tcp_sock *tp = (struct tcp_sock *)sk;
    struct state *s;

    cubictcp_cwnd_event(sk, event);
    if ((u32)event != CA_EVENT_TX_START)
        return;
    s = bpf_sk_storage_get(&states, sk, 0, 0);
    if (!s)
        return;
    is_busy(sk, s, 1);
    // Feedback from before a pause is stale: the first flight uses Cubic's window.
    if (s->in_use && s->w_cubic < tp->snd_cwnd)
        tp->snd_cwnd = s->w_cubic;
    s->in_use = 0;
}

SEC("struct_ops")
void BPF_PROG(claw_acked, struct sock *sk, const struct ack_sample *sample)
{
    struct tcp_sock *tp = (struct tcp_sock *)sk;
    struct config *c = configured();
    struct state *s = bpf_sk_storage_get(&states, sk, 0, 0);
    struct client *client;
    struct address to;
    u64 began, now;

    began = bpf_ktime_get_ns();
    cubictcp_acked(sk, sample);
    if (!s || !c)
        return;
    if (sample->rtt_us > 0)
        s->rtt_us = sample->rtt_us;
    now = bpf_ktime_get_ns();
    // Also in recovery, where the window is not queried.
    if (!s->in_use) {
        s->round.began_ns = 0;
        s->round.failed = 0;
    } else if (is_undelivered(&s->round, now, tp->delivered, tp->packets_out,
                              sample->pkts_acked, tp->snd_cwnd, (u64)s->rtt_us * 1000,
                              min_rtt_ns(tp))) {
        address_of(sk, &to);
        client = bpf_map_lookup_elem(&clients, &to);
        if (client && is_believed(client, now)) {
            withdraw(client, now, c->distrust_ns);
            count(7);
        }
    }
    if (c->measures)
        s->spent_ns = (u32)(bpf_ktime_get_ns() - began);
}

SEC("struct_ops")
u32 BPF_PROG(claw_undo_cwnd, struct sock *sk)
{
    struct state *s = bpf_sk_storage_get(&states, sk, 0, 0);
    u32 window = tcp_reno_undo_cwnd(sk);

    if (s) {
        // The reduction was spurious: restore W_cubic.
        if (s->w_cubic < s->before_loss)
            s->w_cubic = s->before_loss;
        s->reduced_until_ns = 0;
        s->recovers = 0;
    }
    return window;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops claw = {
    .init = (void *)claw_init,
    .release = (void *)claw_release,
    .cong_avoid = (void *)claw_cong_avoid,
    .ssthresh = (void *)claw_ssthresh,
    .set_state = (void *)claw_set_state,
    .cwnd_event = (void *)claw_cwnd_event,
    .pkts_acked = (void *)claw_acked,
    .undo_cwnd = (void *)claw_undo_cwnd,
    .flags = 1, // may be chosen in any namespace
    .name = "claw",
};

// Options on ACKs, and the selection of connections for `claw`.

#define OPTION_KIND 253
#define OPTION_BYTES 8
#define EXPERIMENT_HIGH 0xC1
#define EXPERIMENT_LOW 0xA3
#define FULL (1 << 7)
#define IDLE 3
#define EVENT_FLAG 0x100
// Maximum age of a client's own report that is repeated.
#define REPORT_HOLDS_NS 1000000000ULL

static __always_inline int is_meant(struct bpf_sock_ops *ops, struct config *c)
{
    u32 word[4], four;

    if (c->netns_cookie && bpf_get_netns_cookie(ops) != c->netns_cookie)
        return 0;
    word[0] = ops->remote_ip6[0];
    word[1] = ops->remote_ip6[1];
    word[2] = ops->remote_ip6[2];
    word[3] = ops->remote_ip6[3];
    four = ops->remote_ip4;
    // Otherwise the compiler computes the address to read, which the verifier rejects.
    barrier_var(word[3]);
    barrier_var(four);
    if (ops->family == AF_INET) {
        word[0] = 0;
        word[1] = 0;
        word[2] = bpf_htonl(0xffff);
        word[3] = four;
    }
    return !((word[0] ^ c->dest[0]) & c->mask[0]) && !((word[1] ^ c->dest[1]) & c->mask[1]) &&
           !((word[2] ^ c->dest[2]) & c->mask[2]) && !((word[3] ^ c->dest[3]) & c->mask[3]);
}

// The flags of docs/claw-feedback.md; restores the high bits of the counters.
static __always_inline void take_option(struct bpf_sock_ops *ops)
{
    u8 bytes[OPTION_BYTES] = {OPTION_KIND, 4, EXPERIMENT_HIGH, EXPERIMENT_LOW};
    u64 now = bpf_ktime_get_ns();
    struct bpf_sock *sk = ops->sk;
    struct state *s;
    u32 flags, before, radio, queue, where;

    if (!sk || bpf_load_hdr_opt(ops, bytes, sizeof(bytes), 0) != OPTION_BYTES)
        return;
    s = bpf_sk_storage_get(&states, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);
    if (!s)
        return;
    flags = bytes[7];
    before = s->last_flags & EVENT_FLAG ? s->last_flags : flags;
    radio = ((flags >> 2) - (before >> 2)) & 7;
    queue = (flags - before) & 3;
    // The ACK was reordered.
    if (radio > 4 || queue > 2)
        return;
    count(1);
    s->last_flags = flags | EVENT_FLAG;
    s->feedback.radio_losses += radio;
    s->feedback.queue_losses += queue;
    where = flags >> 5 & 3;
    s->feedback.idle = where == IDLE;
    s->feedback.received_ns = now;
    if (where == IDLE)
        return;
    s->feedback.w_bytes = (u32)bytes[4] << 16 | (u32)bytes[5] << 8 | bytes[6];
    s->feedback.bottleneck = where;
    s->feedback.in_force_ns = now;
    if (!(flags & FULL))
        s->feedback.full_since_ns = 0;
    else if (!s->feedback.full_since_ns)
        s->feedback.full_since_ns = now;
}

static __always_inline struct option *fresh_report(void)
{
    u32 zero = 0;
    struct option *o = bpf_map_lookup_elem(&own_report, &zero);

    if (!o || !o->stamp_ns || bpf_ktime_get_ns() - o->stamp_ns > REPORT_HOLDS_NS)
        return 0;
    return o;
}

SEC("sockops")
int claw_sockops(struct bpf_sock_ops *ops)
{
    char name[] = "claw";
    struct config *c = configured();
    struct option *o;
    u64 cookie;
    u32 zero = 0, flags;

    if (!c)
        return 1;
    switch (ops->op) {
    case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
        if (c->probe_local_port && ops->local_port == c->probe_local_port &&
            bpf_ntohl(ops->remote_port) == c->probe_remote_port) {
            cookie = bpf_get_netns_cookie(ops);
            bpf_map_update_elem(&counts, &zero, &cookie, BPF_ANY);
            break;
        }
        if (!c->serves || !is_meant(ops, c))
            break;
        bpf_setsockopt(ops, IPPROTO_TCP, TCP_CONGESTION, name, sizeof(name));
        flags = ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_PARSE_ALL_HDR_OPT_CB_FLAG;
        bpf_sock_ops_cb_flags_set(ops, flags);
        break;
    case BPF_SOCK_OPS_PARSE_HDR_OPT_CB:
        if (c->serves)
            take_option(ops);
        break;
    case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
        if (!c->reports || !is_meant(ops, c))
            break;
        flags = ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG;
        bpf_sock_ops_cb_flags_set(ops, flags);
        break;
    case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
        if (fresh_report() && bpf_reserve_hdr_opt(ops, OPTION_BYTES, 0))
            count(3);
        break;
    case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
        o = fresh_report();
        if (o && !bpf_store_hdr_opt(ops, o->bytes, OPTION_BYTES, 0))
            count(2);
        break;
    }
    return 1;
}
