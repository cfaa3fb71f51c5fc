//! Traces made up.

use std::str::FromStr;

use crate::progress::Progress;

use super::trace::{Builder, Trace};

/// What a trace is like. All objects have one byte, so that sizes of caches count objects.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Synthetic {
    /// Four groups of objects, each with a quarter of the requests, spread evenly: photos by
    /// popularity.
    Photo,
    /// An object's share falls with its rank to this power.
    Zipf(f64),
}

/// Objects in the groups of [`Synthetic::Photo`].
const PHOTO_GROUPS: [u64; 4] = [1_000, 9_000, 90_000, 2_500_000];
const ZIPF_OBJECTS: u64 = 1_000_000;
const ZIPF_DEFAULT: f64 = 1.0;
const STEP: u64 = 1 << 16;

impl FromStr for Synthetic {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, exponent) =
            text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        match (name, exponent.map(str::parse::<f64>)) {
            ("photo", None) => Ok(Self::Photo),
            ("zipf", None) => Ok(Self::Zipf(ZIPF_DEFAULT)),
            ("zipf", Some(Ok(exponent))) if exponent > 0.0 && exponent <= 5.0 => {
                Ok(Self::Zipf(exponent))
            }
            _ => {
                Err("expected photo, zipf, or zipf:EXPONENT with an exponent above 0 and at most 5"
                    .to_string())
            }
        }
    }
}

impl Synthetic {
    /// So many requests, always the same for a seed.
    pub fn generate(self, requests: u64, seed: u64, progress: &Progress) -> Trace {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut builder = Builder::default();
        let ranks = match self {
            Self::Photo => None,
            Self::Zipf(exponent) => Some(Zipf::new(ZIPF_OBJECTS, exponent)),
        };
        for made in 1..=requests {
            let key = match &ranks {
                None => photo(&mut random),
                Some(ranks) => ranks.draw(&mut random),
            };
            // A synthetic trace has far fewer objects and requests than a trace may have.
            let fits = builder.push(key, 1, false);
            debug_assert!(fits, "the limit on requests keeps to what a trace may have");
            if made % STEP == 0 {
                progress.set(made);
            }
        }
        builder.finish()
    }
}

fn photo(random: &mut fastrand::Rng) -> u64 {
    let group = random.usize(..PHOTO_GROUPS.len());
    (group as u64) << 32 | random.u64(..PHOTO_GROUPS[group])
}

/// Draws ranks from 1 by rejection and inversion (Hoermann, Derflinger 1996): no table, whatever
/// the number of objects.
struct Zipf {
    exponent: f64,
    /// The integral of the density up to 1.5, less the first rank's share.
    low: f64,
    /// The same up to the last rank.
    high: f64,
    /// Draws nearer to their rank than this need no second look.
    near: f64,
    count: f64,
}

impl Zipf {
    fn new(count: u64, exponent: f64) -> Self {
        let mut zipf = Self { exponent, low: 0.0, high: 0.0, near: 0.0, count: count as f64 };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(zipf.count + 0.5);
        zipf.near = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    fn density(&self, x: f64) -> f64 {
        x.powf(-self.exponent)
    }

    /// (x^(1 - s) - 1) / (1 - s), which goes over into ln x.
    fn integral(&self, x: f64) -> f64 {
        let (power, log) = (1.0 - self.exponent, x.ln());
        if power.abs() < 1e-9 { log } else { (power * log).exp_m1() / power }
    }

    fn inverse(&self, area: f64) -> f64 {
        let power = 1.0 - self.exponent;
        if power.abs() < 1e-9 {
            area.exp()
        } else {
            ((area * power).max(-1.0).ln_1p() / power).exp()
        }
    }

    fn draw(&self, random: &mut fastrand::Rng) -> u64 {
        loop {
            let area = self.high + random.f64() * (self.low - self.high);
            let x = self.inverse(area);
            let rank = x.round().clamp(1.0, self.count);
            if rank - x <= self.near || area >= self.integral(rank + 0.5) - self.density(rank) {
                return rank as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests;
