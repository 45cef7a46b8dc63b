//! What a host counted while the ranks ran: the energy that it took, and what its network interfaces had to do. These are
//! counters of the whole host, so other jobs on it count, too.

use crate::data::{Data, Serialize, derive};

/// How far the counters of a host went while a rank ran. Written by the first rank on each host, or by every rank if the
/// launcher does not say which is the first.
#[derive(Data!, Serialize, Default)]
pub struct HostCounters {
    /// Seconds between the first reading, at `MPI_Init`, and the last.
    pub counted_s: f64,
    /// The energy that parts of the host took; empty when it cannot be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub energy: Vec<PartEnergy>,
    /// Why the energy cannot be read; none when it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_energy: Option<String>,
    /// The counters of network interfaces that changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<NetworkCount>,
}

/// The energy that a part of a host took.
#[derive(Data!, Serialize)]
pub struct PartEnergy {
    /// Its name, as the kernel has it: `package-0`; the memory of a package is `package-0 dram`.
    pub part: String,
    /// What it is.
    pub kind: EnergyKind,
    /// How much, in joules.
    pub energy_j: f64,
}

/// What energy is counted of.
#[derive(Data!, Serialize, Copy, Eq)]
#[serde(rename_all = "snake_case")]
pub enum EnergyKind {
    /// The whole host, with all of the others.
    Host,
    /// All that is on the board, as its firmware counts it.
    Platform,
    /// Processors.
    Processor,
    /// Memory.
    Memory,
}

/// How far a counter of a network interface went.
#[derive(Data!, Serialize, Eq)]
pub struct NetworkCount {
    /// The interface, and the port if it has several: `eth0`, `mlx5_0:2`; `TCP` for the connections of the host.
    pub interface: String,
    /// The name that the kernel gives the counter.
    pub counter: String,
    /// What it counts.
    pub kind: NetworkCountKind,
    /// How often, or how many bytes.
    pub value: u64,
}

/// What a counter of a network interface counts.
#[derive(Data!, Serialize, Copy, Eq)]
#[serde(rename_all = "snake_case")]
pub enum NetworkCountKind {
    /// Bytes sent.
    SentBytes,
    /// Bytes received.
    ReceivedBytes,
    /// Packets sent, or segments.
    SentPackets,
    /// Packets received.
    ReceivedPackets,
    /// Packets that were sent again, and timeouts after which they are.
    Retries,
    /// Packets that were dropped.
    Drops,
    /// Packets and links with errors.
    Errors,
    /// Signs of congestion: ticks for which a packet had to wait for credit, and marked packets.
    Congestion,
    /// Packets that were sent again and had arrived before, as the receiver said.
    NeedlessRetries,
}

/// How far the counters of a host went.
#[derive(Data!, Serialize)]
pub struct HostCountersSummary {
    /// The name of the host.
    pub host: String,
    /// The share of the run that its ranks spent in MPI; none when nothing was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_mpi_share: Option<f64>,
    /// Its counters, according to its lowest rank that has them.
    #[serde(flatten)]
    pub counters: HostCounters,
}

impl HostCounters {
    /// The joules of the host, as far as they are counted: of the whole host where that is counted, otherwise of its processors
    /// and memory.
    pub fn energy_j(&self) -> Option<f64> {
        let sum = |is_one: fn(EnergyKind) -> bool| {
            let of = self.energy.iter().filter(|of| is_one(of.kind)).map(|of| of.energy_j);
            of.reduce(|sum, one| sum + one)
        };
        sum(|kind| kind == EnergyKind::Host)
            .or_else(|| sum(|kind| matches!(kind, EnergyKind::Processor | EnergyKind::Memory)))
    }

    /// How much an interface counted of a kind.
    pub fn count(&self, interface: &str, kind: NetworkCountKind) -> u64 {
        let of = self.network.iter().filter(|of| of.interface == interface && of.kind == kind);
        of.fold(0, |sum, of| sum.saturating_add(of.value))
    }
}

impl NetworkCountKind {
    /// What it counts, in words.
    pub fn words(self) -> &'static str {
        match self {
            NetworkCountKind::SentBytes => "bytes sent",
            NetworkCountKind::ReceivedBytes => "bytes received",
            NetworkCountKind::SentPackets => "packets sent",
            NetworkCountKind::ReceivedPackets => "packets received",
            NetworkCountKind::Retries => "retries",
            NetworkCountKind::Drops => "drops",
            NetworkCountKind::Errors => "errors",
            NetworkCountKind::Congestion => "congestion",
            NetworkCountKind::NeedlessRetries => "needless retries",
        }
    }

    /// Whether something went wrong where it is counted, not only traffic.
    pub fn is_trouble(self) -> bool {
        use NetworkCountKind::{Congestion, Drops, Errors, Retries};
        matches!(self, Retries | Drops | Errors | Congestion)
    }

    /// Whether a counter of it is in bytes.
    pub fn is_in_bytes(self) -> bool {
        matches!(self, NetworkCountKind::SentBytes | NetworkCountKind::ReceivedBytes)
    }
}
