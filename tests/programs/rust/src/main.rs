//! Receives in Rust, through the crate `mpi`; prints what was received.
//!
//! Expect: `MPI_Recv` 5 + rank, `MPI_Irecv` 3, `MPI_Mrecv` 2, `MPI_Imrecv` 1, `MPI_Sendrecv` 2,
//! `MPI_Sendrecv_replace` 1 in each profile; the same output as without gyan.

use mpi::point_to_point as p2p;
use mpi::request::WaitGuard;
use mpi::traits::{Communicator, Destination, Source};

fn main() {
    let universe = mpi::initialize().unwrap();
    let world = universe.world();
    let (rank, size) = (world.rank(), world.size());
    let next = (rank + 1) % size;
    let right = world.process_at_rank(next);
    let left = world.process_at_rank((rank + size - 1) % size);
    let mut heard = Vec::new();
    let mut x = -1;

    mpi::request::scope(|scope| {
        // What the neighbour is going to receive; the last 3 with MPI_Irecv, MPI_Mrecv, MPI_Imrecv.
        let sent: Vec<_> = (0..5 + next + 6)
            .map(|_| WaitGuard::from(right.immediate_send(scope, &rank)))
            .collect();
        for _ in 0..4 + rank {
            heard.push(left.receive::<i32>().0);
        }
        left.receive_into(&mut x);
        heard.push(x);
        for _ in 0..3 {
            heard.push(left.immediate_receive::<i32>().get().0);
        }
        heard.push(left.matched_probe().0.matched_receive::<i32>().0);
        // With MPI_Mprobe and MPI_Mrecv inside.
        heard.extend(left.receive_vec::<i32>().0);
        let mut y = -1;
        mpi::request::scope(|scope| {
            let (message, _) = left.matched_probe();
            message.immediate_matched_receive_into(scope, &mut y).wait();
        });
        heard.push(y);
        drop(sent);
    });
    for _ in 0..2 {
        heard.push(p2p::send_receive::<i32, _, _, _>(&rank, &right, &left).0);
    }
    x = rank;
    p2p::send_receive_replace_into(&mut x, &right, &left);
    heard.push(x);
    println!("rank {rank} heard {heard:?}");
}
