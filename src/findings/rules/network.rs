//! What do the counters of the network say?

use gyan_results::{HostCountersSummary, NetworkCount, NetworkCountKind};

use super::{RuleMatch, percent};
use crate::findings::knobs::{COMPONENTS, command, say};
use crate::findings::run::{Family, RunFacts, exact};
use crate::findings::{LEAST_SHARE, MUCH_SHARE};

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

pub(super) fn retries_of_network(run: &RunFacts) -> Vec<RuleMatch> {
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
