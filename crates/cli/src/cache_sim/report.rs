//! What a simulation found, as a table or as JSON.

use flagstone::base::counted;
use serde_json::json;

use crate::arguments::Common;
use crate::failure::Failure;
use crate::output::Output;
use crate::text;

use super::Curve;
use super::replay::Counts;
use super::trace::Trace;

/// All that there is to say.
pub struct Report<'a> {
    pub trace: &'a Trace,
    pub sizes: &'a [u64],
    pub curves: &'a [Curve],
    /// For the trace, and for the replays.
    pub seconds: [f64; 2],
}

impl Report<'_> {
    /// Prints it.
    pub fn print(&self, common: &Common) -> Result<(), Failure> {
        let mut output = Output::new();
        if common.json {
            output.line(self.json().to_string())?;
            return output.finish();
        }
        let Trace { requests, sizes, resized, uniform } = self.trace;
        let (count, objects) = (counted(requests.len(), "request"), counted(sizes.len(), "object"));
        let footprint = text::bytes(self.trace.footprint());
        output.line(match uniform {
            Some(1) => format!("{count} for {objects}, which sizes of the cache count"),
            _ => format!("{count} for {objects} of {footprint} in all"),
        })?;
        if *resized > 0 {
            output.line(format!(
                "{} named another size than the first did",
                counted(*resized, "request")
            ))?;
        }
        output.line("")?;
        output.line("Hits, percent of requests, by size of the cache")?;
        self.table(&mut output, Counts::hit_ratio)?;
        if uniform.is_none() {
            output.line("")?;
            output.line("Hits, percent of bytes")?;
            self.table(&mut output, Counts::byte_hit_ratio)?;
        }
        output.line("")?;
        let [trace, replays] = self.seconds;
        output.line(format!("{trace:.1} s for the trace, {replays:.1} s for the replays"))?;
        output.finish()
    }

    fn table(&self, output: &mut Output, ratio: fn(&Counts) -> f64) -> Result<(), Failure> {
        let sizes: String =
            self.sizes.iter().map(|size| format!(" {:>10}", self.trace.shown(*size))).collect();
        output.line(format!("{:<12}{sizes} {:>14}", "", "M/s a core"))?;
        for curve in self.curves {
            let cells: String = curve
                .points
                .iter()
                .map(|counts| format!(" {:>10.3}", ratio(counts) * 100.0))
                .collect();
            output.line(format!(
                "{:<12}{cells} {:>14.1}",
                curve.player.name(),
                self.rate(curve) / 1e6
            ))?;
        }
        Ok(())
    }

    /// Requests replayed in a second of one core.
    fn rate(&self, curve: &Curve) -> f64 {
        let seconds: f64 = curve.points.iter().map(|counts| counts.seconds).sum();
        (self.trace.requests.len() * curve.points.len()) as f64 / seconds.max(1e-9)
    }

    fn json(&self) -> serde_json::Value {
        let curve = |curve: &Curve| {
            let points = self.sizes.iter().zip(&curve.points).map(|(size, counts)| {
                json!({
                    "size": size, "uses": counts.uses, "hits": counts.hits, "hit_ratio": counts.hit_ratio(),
                    "byte_hit_ratio": counts.byte_hit_ratio(), "core_seconds": counts.seconds,
                })
            });
            json!({
                "policy": curve.player.name(), "requests_per_core_second": self.rate(curve),
                "points": points.collect::<Vec<_>>(),
            })
        };
        json!({
            "requests": self.trace.requests.len(),
            "objects": self.trace.sizes.len(),
            "footprint": self.trace.footprint(),
            "resized": self.trace.resized,
            "trace_seconds": self.seconds[0],
            "replay_seconds": self.seconds[1],
            "policies": self.curves.iter().map(curve).collect::<Vec<_>>(),
        })
    }
}
