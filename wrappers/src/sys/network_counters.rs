//! What did the network interfaces of this host have to do? Read from the counters of the kernel before and after.
//!
//! InfiniBand and RDMA over Ethernet: ABI/stable/sysfs-class-infiniband of the kernel, and the `hw_counters` of the drivers.
//! Slingshot: the telemetry of its driver. Ethernet: ABI/testing/sysfs-class-net-statistics. TCP: `/proc/net/snmp` (RFC 4022)
//! and `/proc/net/netstat`.
//!
//! `root` contains `proc` and `sys`: `/`, or a tree that a test has made.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};

use gyan_results::{NetworkCount, NetworkCountKind};

use super::kernel_files::text;
use super::topology::names;
use NetworkCountKind::{
    Congestion, Drops, Errors, NeedlessRetries, ReceivedBytes, ReceivedPackets, Retries, SentBytes,
    SentPackets,
};

/// Files in `ports/N/counters` and `ports/N/hw_counters`, and what they count.
const PORT: &[(&str, NetworkCountKind)] = &[
    ("port_xmit_data", SentBytes),
    ("port_rcv_data", ReceivedBytes),
    ("port_xmit_packets", SentPackets),
    ("port_rcv_packets", ReceivedPackets),
    ("port_xmit_wait", Congestion),
    ("port_xmit_discards", Drops),
    ("VL15_dropped", Drops),
    ("port_rcv_errors", Errors),
    ("port_rcv_remote_physical_errors", Errors),
    ("symbol_error", Errors),
    ("local_link_integrity_errors", Errors),
    ("excessive_buffer_overrun_errors", Errors),
    ("link_error_recovery", Errors),
    ("link_downed", Errors),
    ("local_ack_timeout_err", Retries),
    ("packet_seq_err", Retries),
    ("rnr_nak_retry_err", Retries),
    ("roce_adp_retrans", Retries),
    ("out_of_buffer", Drops),
    ("out_of_sequence", Errors),
    ("np_cnp_sent", Congestion),
    ("rp_cnp_handled", Congestion),
    ("np_ecn_marked_roce_packets", Congestion),
];
/// `port_xmit_data` and `port_rcv_data` count in units of this many bytes.
const DATA: u64 = 4;

/// Files in `device/telemetry` of Slingshot.
const SLINGSHOT: &[(&str, NetworkCountKind)] = &[
    ("hni_sts_tx_ok_octets", SentBytes),
    ("hni_sts_rx_ok_octets", ReceivedBytes),
    ("pct_spt_timeouts", Retries),
    ("pct_sct_timeouts", Retries),
];

/// Files in `statistics` of an interface.
const INTERFACE: &[(&str, NetworkCountKind)] = &[
    ("tx_bytes", SentBytes),
    ("rx_bytes", ReceivedBytes),
    ("tx_packets", SentPackets),
    ("rx_packets", ReceivedPackets),
    ("tx_dropped", Drops),
    ("rx_dropped", Drops),
    ("rx_missed_errors", Drops),
    ("tx_errors", Errors),
    ("rx_errors", Errors),
];

/// Numbers in `/proc/net/snmp`.
const TCP: &[(&str, NetworkCountKind)] =
    &[("OutSegs", SentPackets), ("InSegs", ReceivedPackets), ("RetransSegs", Retries)];
/// Numbers in `/proc/net/netstat`: segments that a receiver had before (RFC 2883).
const TCP_MORE: &[(&str, NetworkCountKind)] = &[("TCPDSACKRecv", NeedlessRetries)];

/// The counters of a host, as they were at the beginning.
pub(crate) struct NetworkMeter {
    root: PathBuf,
    before: Vec<NetworkCount>,
}

impl NetworkMeter {
    /// Begins to count.
    pub(crate) fn begin(root: &Path) -> NetworkMeter {
        NetworkMeter { root: root.to_owned(), before: all(root) }
    }

    /// How far each counter went that changed. One that was set back is left out.
    pub(crate) fn counts(&self) -> Vec<NetworkCount> {
        let since = |now: NetworkCount| {
            let is_same = |before: &&NetworkCount| {
                before.interface == now.interface && before.counter == now.counter
            };
            let before = self.before.iter().find(is_same)?;
            let value = now.value.checked_sub(before.value).filter(|value| *value > 0)?;
            Some(NetworkCount { value, ..now })
        };
        all(&self.root).into_iter().filter_map(since).collect()
    }
}

fn all(root: &Path) -> Vec<NetworkCount> {
    let mut counts = Vec::new();
    infiniband(&root.join("sys/class/infiniband"), &mut counts);
    let slingshot = root.join("sys/class/cxi");
    for device in names(&slingshot) {
        let place = slingshot.join(&device).join("device/telemetry");
        read(&device, &place, SLINGSHOT, &mut counts);
    }
    interfaces(&root.join("sys/class/net"), &mut counts);
    tcp(&root.join("proc/net/snmp"), "Tcp:", TCP, &mut counts);
    tcp(&root.join("proc/net/netstat"), "TcpExt:", TCP_MORE, &mut counts);
    counts
}

/// Reads the files of a directory that are there.
fn read(
    interface: &str,
    place: &Path,
    files: &[(&str, NetworkCountKind)],
    counts: &mut Vec<NetworkCount>,
) {
    counts.extend(files.iter().filter_map(|(file, kind)| {
        // Slingshot writes the time after an `@`.
        let value = text(place.join(file))?.split(['@', '\n']).next()?.trim().parse().ok()?;
        Some(count(interface, file, *kind, value))
    }));
}

fn count(interface: &str, counter: &str, kind: NetworkCountKind, value: u64) -> NetworkCount {
    NetworkCount { interface: interface.to_owned(), counter: counter.to_owned(), kind, value }
}

fn infiniband(class: &Path, counts: &mut Vec<NetworkCount>) {
    for device in names(class) {
        let place = class.join(&device).join("ports");
        let ports = names(&place);
        for port in &ports {
            let name = if ports.len() > 1 { format!("{device}:{port}") } else { device.clone() };
            let first = counts.len();
            read(&name, &place.join(port).join("counters"), PORT, counts);
            read(&name, &place.join(port).join("hw_counters"), PORT, counts);
            for of in counts.iter_mut().skip(first).filter(|of| of.kind.is_in_bytes()) {
                of.value = of.value.saturating_mul(DATA);
            }
        }
    }
}

/// Those with a device; in a container, where none has, all but the loopback. A bridge or bond counts the packets of
/// its interfaces again.
fn interfaces(class: &Path, counts: &mut Vec<NetworkCount>) {
    let all: Vec<String> = names(class).into_iter().filter(|name| name != "lo").collect();
    let has_device = |name: &&String| class.join(name).join("device").exists();
    let any_has = all.iter().any(|name| has_device(&name));
    for name in all.iter().filter(|name| !any_has || has_device(name)) {
        read(name, &class.join(name).join("statistics"), INTERFACE, counts);
    }
}

/// Two lines that begin with `of`: the names, and the numbers.
fn tcp(file: &Path, of: &str, known: &[(&str, NetworkCountKind)], counts: &mut Vec<NetworkCount>) {
    let text = text(file).unwrap_or_default();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(of));
    let (Some(names), Some(numbers)) = (lines.next(), lines.next()) else { return };
    let numbers = names.split_ascii_whitespace().zip(numbers.split_ascii_whitespace());
    counts.extend(numbers.filter_map(|(name, number)| {
        let (_, kind) = known.iter().find(|(known, _)| *known == name)?;
        Some(count("TCP", name, *kind, number.parse().ok()?))
    }));
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::sys::trees::tree;

    const PORTS: &str = "sys/class/infiniband/mlx5_0/ports/1";
    const ETH0: &str = "sys/class/net/eth0/statistics";
    const CXI: &str = "sys/class/cxi/cxi0/device/telemetry";

    #[test]
    fn only_what_changed_is_told_in_bytes_and_by_interface() {
        let root = tree(&[
            (format!("{PORTS}/counters/port_xmit_data"), "1000\n"),
            (format!("{PORTS}/counters/port_xmit_wait"), "7\n"),
            (format!("{PORTS}/counters/symbol_error"), "3\n"),
            (format!("{PORTS}/hw_counters/local_ack_timeout_err"), "0\n"),
            (format!("{CXI}/hni_sts_tx_ok_octets"), "500@1700000000.000000001\n"),
            (format!("{ETH0}/tx_bytes"), "10\n"),
            ("sys/class/net/lo/statistics/tx_bytes".to_owned(), "10\n"),
            (
                "proc/net/snmp".to_owned(),
                "Tcp: MaxConn OutSegs RetransSegs InErrs\nTcp: -1 100 5 0\nUdp: InDatagrams\nUdp: 4\n",
            ),
            (
                "proc/net/netstat".to_owned(),
                "TcpExt: Pruned TCPDSACKRecv\nTcpExt: 0 4\nIpExt: InOctets\nIpExt: 1\n",
            ),
        ]);
        let meter = NetworkMeter::begin(root.path());
        assert_eq!(meter.counts(), []);
        let set = |file: &str, text: &str| fs::write(root.path().join(file), text).unwrap();
        set(&format!("{PORTS}/counters/port_xmit_data"), "1500\n");
        set(&format!("{PORTS}/counters/port_xmit_wait"), "9\n");
        // Somebody has reset it.
        set(&format!("{PORTS}/counters/symbol_error"), "0\n");
        set(&format!("{PORTS}/hw_counters/local_ack_timeout_err"), "2\n");
        set(&format!("{CXI}/hni_sts_tx_ok_octets"), "800@1700000001.000000001\n");
        set(&format!("{ETH0}/tx_bytes"), "40\n");
        set("sys/class/net/lo/statistics/tx_bytes", "40\n");
        set("proc/net/snmp", "Tcp: MaxConn OutSegs RetransSegs InErrs\nTcp: -1 110 8 0\n");
        set("proc/net/netstat", "TcpExt: Pruned TCPDSACKRecv\nTcpExt: 0 6\n");
        let expected = [
            count("mlx5_0", "port_xmit_data", SentBytes, 2000),
            count("mlx5_0", "port_xmit_wait", Congestion, 2),
            count("mlx5_0", "local_ack_timeout_err", Retries, 2),
            count("cxi0", "hni_sts_tx_ok_octets", SentBytes, 300),
            count("eth0", "tx_bytes", SentBytes, 30),
            count("TCP", "OutSegs", SentPackets, 10),
            count("TCP", "RetransSegs", Retries, 3),
            count("TCP", "TCPDSACKRecv", NeedlessRetries, 2),
        ];
        assert_eq!(meter.counts(), expected);
    }

    #[test]
    fn a_bond_does_not_count_the_packets_of_its_interfaces_again() {
        let root = tree(&[
            ("sys/class/net/bond0/statistics/tx_packets", "1"),
            ("sys/class/net/eth0/statistics/tx_packets", "1"),
            ("sys/class/net/eth0/device/vendor", "0x8086"),
        ]);
        let found: Vec<String> = all(root.path()).into_iter().map(|of| of.interface).collect();
        assert_eq!(found, ["eth0"]);
    }
}
