//! The contents of segments: the same for every client, and incompressible.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The bytes of a segment, piece by piece.
#[derive(Debug)]
pub(crate) struct Content {
    random: ChaCha8Rng,
    left: u64,
}

impl Content {
    /// The segment of a number and a size.
    pub(crate) fn new(number: u64, bytes: u64) -> Self {
        Self { random: ChaCha8Rng::seed_from_u64(number), left: bytes }
    }

    /// Fills a buffer as far as there is content; returns the length.
    pub(crate) fn fill(&mut self, buffer: &mut [u8]) -> usize {
        let n = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        if let Some(part) = buffer.get_mut(..n) {
            self.random.fill_bytes(part);
        }
        self.left -= n as u64;
        n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(number: u64, bytes: u64) -> Vec<u8> {
        let mut content = Content::new(number, bytes);
        let (mut out, mut buffer) = (Vec::new(), [0; 64]);
        loop {
            match content.fill(&mut buffer) {
                0 => return out,
                n => out.extend_from_slice(&buffer[..n]),
            }
        }
    }

    #[test]
    fn a_number_is_a_content() {
        assert_eq!(whole(1, 1_000), whole(1, 1_000));
        assert_ne!(whole(1, 1_000), whole(2, 1_000));
        assert!(whole(1, 0).is_empty());
        // All byte values are equally frequent: 40 of each on average.
        let mut counts = [0_u32; 256];
        whole(3, 10_240).iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        assert!(counts.iter().all(|n| (10..90).contains(n)), "{counts:?}");
    }
}
