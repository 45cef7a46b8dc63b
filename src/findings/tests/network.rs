//! Hosts that counted so many packets, and so many that were sent again.

use serde_json::{Value, json};

use super::{call, close, found, one, rank, with};

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
    let expected =
        "1.2 % of the packets that host n0 sent by TCP were lost and sent again (1200 of 100000)";
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
    assert!(has(&counted(5.1, &tcp(100_000, 1200))) && !has(&counted(4.9, &tcp(100_000, 1200))));
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
