//! What do the counters of the network say?

use gyan_results::{HostCountersSummary, NetworkCount, NetworkCountKind};

use super::{Rule, RuleMatch, percent};
use crate::findings::knobs::{COMPONENTS, command, say};
use crate::findings::run::{Family, RunFacts, exact};
use crate::findings::{LEAST_SHARE, MUCH_SHARE};

pub(super) const RULES: &[Rule] = rules! {
    400 "network-retries": System,
        "the retries of the network (gyan report --machine), and the time in MPI",
        retries_of_network;
};

const SHOWN: &str = "gyan report --machine";
/// From this share of packets that are sent again, a connection is slow: after Mathis et al. 1997 it sends at most
/// `1460 bytes / 100 us * sqrt(1.5 / 0.001)`, or 0.57 GB/s, over Ethernet within a cluster. That is less than half of what
/// 10 Gbit/s carry.
const MUCH_LOSS: f64 = 1e-3;
/// TCP of Linux waits at least so long for a confirmation before it sends again (`TCP_RTO_MIN`).
const TIMEOUT_S: f64 = 0.2;
/// A port for RDMA that sends so many times the bytes of the Ethernet has the messages of MPI.
const MOST_BYTES: u64 = 2;
/// Counters that tell where packets got lost.
const LOSSES_AT_MOST: usize = 3;

/// What an interface of a host sent again because it was lost. TCP also sends again what is only late, as from a busy host.
struct Retries<'a> {
    of: &'a HostCountersSummary,
    interface: &'a str,
    again: u64,
    sent: u64,
}

impl Retries<'_> {
    fn share(&self) -> f64 {
        self.again as f64 / self.sent as f64
    }

    /// Whether these are many of the packets, and the timeouts, were each one, would be a notable part of the run.
    fn is_much(&self) -> bool {
        let waits_s = self.again as f64 * TIMEOUT_S;
        self.share() >= MUCH_LOSS && waits_s > LEAST_SHARE * self.of.counters.counted_s
    }
}

/// What the interfaces that may have the messages of MPI sent again.
fn retries(of: &HostCountersSummary) -> Vec<Retries<'_>> {
    let bytes_of = |names: &[&str]| -> u64 {
        let counts = of.counters.network.iter();
        counts.filter(|one| names.contains(&one.counter.as_str())).map(|one| one.value).sum()
    };
    let by_rdma = bytes_of(&["port_xmit_data", "hni_sts_tx_ok_octets"]);
    let is_by_rdma = by_rdma > bytes_of(&["tx_bytes"]).saturating_mul(MOST_BYTES);
    let count = |interface: &str, kind| of.counters.count(interface, kind);
    let mut interfaces: Vec<&str> =
        of.counters.network.iter().map(|one| one.interface.as_str()).collect();
    interfaces.dedup();
    let all = interfaces.into_iter().map(|interface| Retries {
        of,
        interface,
        again: count(interface, NetworkCountKind::Retries)
            .saturating_sub(count(interface, NetworkCountKind::NeedlessRetries)),
        sent: count(interface, NetworkCountKind::SentPackets),
    });
    all.filter(|one| one.sent > 0 && !(one.interface == "TCP" && is_by_rdma)).collect()
}

/// Whether ranks send messages through the network at all.
fn is_used(run: &RunFacts) -> bool {
    let components: Vec<&str> = run.knob(COMPONENTS).unwrap_or_default().split(',').collect();
    let has = |name| components.contains(&name);
    let is_by_tcp = run.family == Family::OpenMpi && has("tcp") && !has("vader") && !has("sm");
    is_by_tcp || !run.is_on_one_host()
}

fn retries_of_network(run: &RunFacts) -> Vec<RuleMatch> {
    let in_mpi_s = run.summary.in_mpi.as_ref().map_or(0.0, |of| of.time_s.sum.as_f64());
    let in_mpi = run.share(in_mpi_s - run.start_and_end().seconds);
    if in_mpi < MUCH_SHARE || !is_used(run) {
        return Vec::new();
    }
    let all = run.summary.host_counters.iter().flat_map(retries);
    let much: Vec<Retries> = all.filter(Retries::is_much).collect();
    let worst = much.iter().max_by(|one, other| one.share().total_cmp(&other.share()));
    let Some(worst) = worst else { return Vec::new() };
    let others = match much.len() - 1 {
        0 => String::new(),
        1 => "; too many on 1 more interface".to_owned(),
        number => format!("; too many on {number} more interfaces"),
    };
    let Retries { of: HostCountersSummary { host, counters, .. }, interface, again, sent } = worst;
    let title = format!(
        "{} of the packets that host {host} sent by {interface} were lost and sent again ({again} of {sent}){others}",
        percent(worst.share())
    );
    let mut evidence = vec![
        exact("packets sent again", *again as f64, "", SHOWN),
        exact("packets sent", *sent as f64, "", SHOWN),
    ];
    let is_loss = |one: &&NetworkCount| {
        matches!(one.kind, NetworkCountKind::Drops | NetworkCountKind::Errors)
    };
    let losses = counters.network.iter().filter(is_loss).take(LOSSES_AT_MOST);
    evidence.extend(losses.map(|one| {
        exact(&format!("{} of {}", one.counter, one.interface), one.value as f64, "", SHOWN)
    }));
    let advice = vec![
        command(
            "see which interfaces dropped packets; these are the counters of whole hosts, so other jobs may be the cause",
            "gyan report --machine DIR",
        ),
        say(format!(
            "run again without {host}: if it is gone, tell the administrator the host and the interface"
        )),
    ];
    vec![RuleMatch { title, evidence, advice, ..RuleMatch::default() }]
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::findings::tests::{call, close, found, one, rank, with};

    /// Two ranks on hosts of their own, in MPI for so long of 100 s; the first one counted this.
    fn counted(in_mpi_s: f64, network: &[(&str, &str, &str, u64)]) -> Vec<Value> {
        let count = |(interface, counter, kind, value): &(&str, &str, &str, u64)| json!({"interface": interface, "counter": counter, "kind": kind, "value": value});
        let network: Vec<Value> = network.iter().map(count).collect();
        let of = |number: u32| {
            let of = rank(number, 2, 100.0, &[call("MPI_Allreduce", 10, in_mpi_s)]);
            let counters = if number == 0 { network.clone() } else { Vec::new() };
            let of = with(of, "host", json!(format!("n{number}")));
            with(of, "host_counters", json!({"counted_s": 100.0, "network": counters}))
        };
        (0..2).map(of).collect()
    }

    /// Segments of TCP, and those sent again.
    fn tcp(sent: u64, again: u64) -> [(&'static str, &'static str, &'static str, u64); 2] {
        [("TCP", "OutSegs", "sent_packets", sent), ("TCP", "RetransSegs", "retries", again)]
    }

    fn has(ranks: &[Value]) -> bool {
        found(ranks).iter().any(|of| of.id == "network-retries")
    }

    #[test]
    fn packets_that_are_sent_again_are_found_with_their_host_and_interface() {
        let drops = ("eth0", "rx_missed_errors", "drops", 700);
        let findings = found(&counted(30.0, &[&tcp(100_000, 1200)[..], &[drops]].concat()));
        let finding = one(&findings, "network-retries");
        let expected = "1.2 % of the packets that host n0 sent by TCP were lost and sent again (1200 of 100000)";
        assert_eq!((finding.title.as_str(), finding.at_stake_s), (expected, None));
        close(finding.evidence.get(2).map(|of| of.value), 700.0);
        assert_eq!(finding.evidence[2].what, "rx_missed_errors of eth0");
    }

    #[test]
    fn few_of_the_packets_few_at_all_or_a_run_that_hardly_waits_are_nothing() {
        // A thousandth of the packets.
        assert!(has(&counted(30.0, &tcp(1_000_000, 1000))));
        assert!(!has(&counted(30.0, &tcp(1_000_000, 999))));
        // Six timeouts of 0.2 s are more than 1 % of 100 s; one lost packet of an idle run is not.
        assert!(has(&counted(30.0, &tcp(600, 6))) && !has(&counted(30.0, &tcp(600, 4))));
        assert!(!has(&counted(30.0, &tcp(20, 1))));
        // What had arrived was not lost.
        let needless = ("TCP", "TCPDSACKRecv", "needless_retries", 1101);
        assert!(!has(&counted(30.0, &[&tcp(100_000, 1200)[..], &[needless]].concat())));
        // 5 % of the run in MPI.
        assert!(
            has(&counted(5.1, &tcp(100_000, 1200))) && !has(&counted(4.9, &tcp(100_000, 1200)))
        );
    }

    #[test]
    fn connections_matter_only_where_messages_may_go_through_them() {
        let of_port = |bytes| {
            let port = [
                ("mlx5_0", "port_xmit_data", "sent_bytes", bytes),
                ("mlx5_0", "port_xmit_packets", "sent_packets", 1_000_000),
                ("eth0", "tx_bytes", "sent_bytes", 1_000_000),
            ];
            counted(30.0, &[&tcp(100_000, 1200)[..], &port].concat())
        };
        // Through RDMA, or by TCP through the same port.
        assert!(!has(&of_port(2_000_001)) && has(&of_port(2_000_000)));
        let lossy = [
            ("mlx5_0", "port_xmit_packets", "sent_packets", 1_000_000),
            ("mlx5_0", "local_ack_timeout_err", "retries", 300),
            ("mlx5_0", "packet_seq_err", "retries", 700),
        ];
        let findings = found(&counted(30.0, &lossy));
        let title = &one(&findings, "network-retries").title;
        assert!(title.contains("0.1 % of the packets that host n0 sent by mlx5_0"), "{title}");
        // On one host they go through memory, unless TCP is all that Open MPI may use.
        let mut together = counted(30.0, &tcp(100_000, 1200));
        together[1]["host"] = json!("n0");
        assert!(!has(&together));
        for (value, expected) in [("tcp,self", true), ("tcp,vader,self", false), ("^tcp", false)] {
            let knobs = json!([{"name": "btl", "value": value}]);
            together[0]["knobs"] = knobs;
            assert_eq!(has(&together), expected, "{value}");
        }
    }
}
