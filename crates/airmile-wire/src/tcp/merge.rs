//! Merges summaries of disjoint sets of users.

use std::ops::AddAssign;

use super::quality::Quality;
use super::summary::{MAX_PERIODIC, Share, StudySummary};

fn add<T: AddAssign, const N: usize>(sums: &mut [T; N], more: [T; N]) {
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

impl Share {
    const fn merge(&mut self, other: Self) {
        self.flows += other.flows;
        self.bytes += other.bytes;
    }
}

impl Quality {
    /// Adds what was counted elsewhere of the same capture.
    pub fn merge(&mut self, other: Self) {
        let Self {
            packets,
            tcp_packets,
            udp_packets,
            ip_bytes,
            tunnelled,
            payload_cut,
            options_cut,
            copies,
            repeated_connections,
            split_connections,
            steps_back,
            largest_step_back_ns,
            mid_flow,
            super_segments,
            wild_sequences,
            late_segments,
            first_fragments,
            later_fragments,
            reassembled,
            incomplete_datagrams,
            overlapping_fragments,
            unseen_bytes,
            client_guessed,
            use_above_available,
        } = other;
        self.packets += packets;
        self.tcp_packets += tcp_packets;
        self.udp_packets += udp_packets;
        self.ip_bytes += ip_bytes;
        self.tunnelled += tunnelled;
        self.payload_cut += payload_cut;
        self.options_cut += options_cut;
        self.copies += copies;
        self.repeated_connections += repeated_connections;
        self.split_connections += split_connections;
        self.steps_back += steps_back;
        self.largest_step_back_ns = self.largest_step_back_ns.max(largest_step_back_ns);
        self.mid_flow += mid_flow;
        self.super_segments += super_segments;
        self.wild_sequences += wild_sequences;
        self.late_segments += late_segments;
        self.first_fragments += first_fragments;
        self.later_fragments += later_fragments;
        self.reassembled += reassembled;
        self.incomplete_datagrams += incomplete_datagrams;
        self.overlapping_fragments += overlapping_fragments;
        self.unseen_bytes += unseen_bytes;
        self.client_guessed += client_guessed;
        self.use_above_available += use_above_available;
    }
}

impl StudySummary {
    /// Adds the summary of other users of the same capture. Sums of floating-point
    /// numbers may differ in the last digits from those in the capture's order.
    pub fn merge(&mut self, other: Self) {
        let Self {
            quality,
            start_ns,
            end_ns,
            users,
            tcp,
            udp,
            tcp_ports,
            terminations,
            applications,
            client_by,
            dl_bytes,
            ul_bytes,
            duration_s,
            payload_to_end_s,
            dl_rate_bps,
            ul_rate_bps,
            dl_correlations,
            ul_correlations,
            dl_rate_by_size_bps,
            seconds,
            concurrency,
            upstream_ms,
            proxy_ms,
            downstream_ms,
            handshake_ms,
            rtt_ratio,
            promotion_ms,
            dns_ms,
            dns_unanswered,
            retx_share,
            flight_bytes,
            large_flows,
            large_with_loss,
            large_with_slow_start,
            large_dup_acks,
            large_out_of_order,
            dup_ack_ratio,
            timeouts_avoided,
            with_timestamps,
            tick_ms,
            available_bps,
            send_rate_bps,
            utilisation,
            dl_flows,
            window_full_flows,
            window_full_first,
            window_full_share,
            initial_windows_usual,
            initial_window_bytes,
            content_types,
            periodic,
            late_closes,
            closed,
            energy_mj,
            radio_ns,
            table1_kbps,
            congestion_controls,
            quic_handshake_ms,
        } = other;
        self.quality.merge(quality);
        self.start_ns = self.start_ns.into_iter().chain(start_ns).min();
        self.end_ns = self.end_ns.max(end_ns);
        self.users += users;
        self.tcp.merge(tcp);
        self.udp.merge(udp);
        tcp_ports
            .into_iter()
            .for_each(|(key, more)| self.tcp_ports.entry(key).or_default().merge(more));
        terminations
            .into_iter()
            .for_each(|(key, more)| *self.terminations.entry(key).or_default() += more);
        applications
            .into_iter()
            .for_each(|(key, more)| self.applications.entry(key).or_default().merge(more));
        client_by
            .into_iter()
            .for_each(|(key, more)| *self.client_by.entry(key).or_default() += more);
        self.dl_bytes.merge(&dl_bytes);
        self.ul_bytes.merge(&ul_bytes);
        self.duration_s.merge(&duration_s);
        self.payload_to_end_s.merge(&payload_to_end_s);
        self.dl_rate_bps.merge(&dl_rate_bps);
        self.ul_rate_bps.merge(&ul_rate_bps);
        self.dl_correlations
            .iter_mut()
            .zip(&dl_correlations)
            .for_each(|(sum, more)| sum.merge(more));
        self.ul_correlations
            .iter_mut()
            .zip(&ul_correlations)
            .for_each(|(sum, more)| sum.merge(more));
        self.dl_rate_by_size_bps
            .iter_mut()
            .zip(&dl_rate_by_size_bps)
            .for_each(|(sum, more)| sum.merge(more));
        add(&mut self.seconds, seconds);
        self.concurrency.merge(&concurrency);
        self.upstream_ms.merge(&upstream_ms);
        self.proxy_ms.merge(&proxy_ms);
        self.downstream_ms.merge(&downstream_ms);
        self.handshake_ms.merge(&handshake_ms);
        self.rtt_ratio.merge(&rtt_ratio);
        self.promotion_ms.merge(&promotion_ms);
        self.dns_ms.merge(&dns_ms);
        self.dns_unanswered += dns_unanswered;
        self.retx_share.merge(&retx_share);
        self.flight_bytes.merge(&flight_bytes);
        self.large_flows += large_flows;
        self.large_with_loss += large_with_loss;
        self.large_with_slow_start += large_with_slow_start;
        self.large_dup_acks.merge(&large_dup_acks);
        self.large_out_of_order.merge(&large_out_of_order);
        self.dup_ack_ratio.merge(&dup_ack_ratio);
        add(&mut self.timeouts_avoided, timeouts_avoided);
        self.with_timestamps += with_timestamps;
        self.tick_ms.merge(&tick_ms);
        self.available_bps.merge(&available_bps);
        self.send_rate_bps.merge(&send_rate_bps);
        self.utilisation.merge(&utilisation);
        self.dl_flows += dl_flows;
        self.window_full_flows += window_full_flows;
        self.window_full_first.merge(&window_full_first);
        self.window_full_share.merge(&window_full_share);
        self.initial_windows_usual += initial_windows_usual;
        self.initial_window_bytes.merge(&initial_window_bytes);
        content_types
            .into_iter()
            .for_each(|(key, more)| *self.content_types.entry(key).or_default() += more);
        self.periodic.extend(periodic);
        self.periodic.sort_by(|a, b| (&a.client, &a.server).cmp(&(&b.client, &b.server)));
        self.periodic.truncate(MAX_PERIODIC);
        self.late_closes += late_closes;
        self.closed += closed;
        add(&mut self.energy_mj, energy_mj);
        add(&mut self.radio_ns, radio_ns);
        self.table1_kbps.iter_mut().zip(&table1_kbps).for_each(|(sum, more)| sum.merge(more));
        congestion_controls
            .into_iter()
            .for_each(|(key, more)| *self.congestion_controls.entry(key).or_default() += more);
        self.quic_handshake_ms.merge(&quic_handshake_ms);
    }
}
