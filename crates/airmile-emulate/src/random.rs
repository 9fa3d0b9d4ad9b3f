//! Random numbers: one stream for each user and process, so that a change to one does not
//! affect the others. A user's streams depend on its name, not on the other users: without
//! one of them, the cell stays the same for the rest.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Owner of random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner(u64);

impl Owner {
    /// The measured phone.
    pub(crate) const PHONE: Self = Self(0);

    /// The owner with this name: FNV-1a with 64 bits (Fowler, Noll, Vo), which does not
    /// change with library versions.
    pub(crate) fn named(name: &str) -> Self {
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self(name.bytes().fold(0xcbf2_9ce4_8422_2325, step))
    }

    /// The same user on another carrier; 0 is the primary.
    pub(crate) const fn on_carrier(self, carrier: u64) -> Self {
        Self(self.0.wrapping_add(carrier << 32))
    }

    /// A seed derived for the user, for parts that draw their own streams from a seed.
    pub(crate) const fn seed(self, seed: u64) -> u64 {
        seed ^ self.0
    }

    /// The stream of one of its processes.
    pub(crate) fn random(self, seed: u64, process: Process) -> Random {
        Random::new(seed, self.0.wrapping_add(process as u64))
    }
}

/// The random processes. The numbers only separate the streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Process {
    /// The uplink's fading.
    UlFading = 20,
    /// Reception of uplink blocks.
    UlBlocks = 21,
    /// Errors of measurements.
    Measurement = 30,
    /// The neighbour cell's load.
    Neighbour = 31,
    /// Position of a user.
    Place = 10,
    /// Start time of a user.
    Start = 50,
    /// Sizes of a video's segments.
    Segments = 40,
    /// The downlink's fading.
    DlFading = 1_000,
    /// Reception of downlink blocks.
    DlBlocks = 1_001,
    /// Arrivals of a user with byte traffic.
    Backlog = 1_002,
    /// Quality of resource block groups.
    Subbands = 1_000 + (1 << 24),
    /// Losses of the phone's reports on its radio.
    ReportLoss = 32,
    /// Losses in the core network, each direction.
    DownLoss = 200_000,
    UpLoss = 200_001,
    /// Jitter in the core network.
    DownJitter = 200_002,
    UpJitter = 200_003,
}

/// A stream of random numbers.
#[derive(Debug, Clone)]
pub(crate) struct Random(ChaCha8Rng);

impl Random {
    /// The stream `process` of a seed.
    pub(crate) fn new(seed: u64, process: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(process);
        Self(rng)
    }

    /// Sixty-four random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1), from 53 bits.
    pub(crate) fn uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Approximately standard normal: twelve uniforms less 6 (Irwin-Hall), which unlike
    /// Box-Muller needs no libm: the rest of the crate uses libm only for slow curves,
    /// where the last bit does not matter.
    pub(crate) fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }

    /// True with a probability.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }
}
