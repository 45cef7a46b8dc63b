//! What do numbers look like that differ from run to run, while nothing changes? Made-up ones: only the order of their ranks
//! counts, so their size does not.

/// How the numbers of a series depend on the ones before.
#[derive(Clone, Copy, Debug)]
pub(super) enum NoiseKind {
    /// Each keeps this part of the one before; with 0 they are independent.
    Keeps(f64),
    /// The machine is fast or slow, and changes from one to the other after five numbers in the mean.
    TwoStates,
}

/// Those that a series is compared with: it has to be clearer than by any of them.
pub(super) const NOISES: [NoiseKind; 3] =
    [NoiseKind::Keeps(0.0), NoiseKind::Keeps(0.5), NoiseKind::TwoStates];

const LEAVES_STATE: f64 = 0.2;
/// How far apart the states are, in standard deviations of the numbers in one.
const APART: f64 = 4.0;

/// So many numbers.
pub(super) fn noise(of: NoiseKind, length: usize, random: &mut fastrand::Rng) -> Vec<f64> {
    let mut last = normal(random);
    let mut is_slow = random.bool();
    let next = |_| {
        match of {
            NoiseKind::Keeps(part) => {
                last = part * last + (1.0 - part * part).sqrt() * normal(random);
            }
            NoiseKind::TwoStates => {
                is_slow ^= random.f64() < LEAVES_STATE;
                last = normal(random) + if is_slow { APART } else { 0.0 };
            }
        }
        last
    };
    (0..length).map(next).collect()
}

/// A number from the normal distribution, by Box and Muller.
fn normal(random: &mut fastrand::Rng) -> f64 {
    let (one, other) = (1.0 - random.f64(), random.f64());
    (-2.0 * libm::log(one)).sqrt() * libm::cos(std::f64::consts::TAU * other)
}
