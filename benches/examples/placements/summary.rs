//! How far predictions were off, and how near to the best plan the search's came.

use std::fmt;

/// What an answer took, measured and predicted. Seconds and tokens per second.
pub(crate) struct Measured {
    pub(crate) n_gen: u32,
    pub(crate) ttft: [f64; 2],
    pub(crate) tps: [f64; 2],
    /// CPU, GPU, copies hidden and exposed.
    pub(crate) lanes: [f64; 4],
}

impl Measured {
    /// The one in the middle, for each figure by itself.
    pub(crate) fn middle(mut rounds: Vec<Measured>) -> Measured {
        let middle = rounds.len() / 2;
        rounds.sort_by(|a, b| a.ttft[0].total_cmp(&b.ttft[0]));
        let ttft = rounds[middle].ttft;
        rounds.sort_by(|a, b| a.tps[0].total_cmp(&b.tps[0]));
        Measured { ttft, ..rounds.swap_remove(middle) }
    }

    /// Seconds to the last token.
    fn whole(&self) -> f64 {
        self.ttft[0] + f64::from(self.n_gen - 1) / self.tps[0]
    }
}

/// All cells; of each the search's plan first.
#[derive(Default)]
pub(crate) struct Summary(Vec<Vec<Measured>>);

/// The chosen plan may be slower than the best by this share.
const NEAR: f64 = 0.05;

impl Summary {
    pub(crate) fn add(&mut self, cell: Vec<Measured>) {
        self.0.push(cell);
    }

    /// Relative errors, in rising order.
    fn errors(&self, of: impl Fn(&Measured) -> [f64; 2]) -> Vec<f64> {
        let errors =
            self.0.iter().flatten().map(of).map(|[found, said]| (said / found - 1.0).abs());
        let mut errors: Vec<f64> = errors.collect();
        errors.sort_by(f64::total_cmp);
        errors
    }

    /// How much longer the chosen plan's answer took than the best one's.
    fn behind(&self) -> Vec<f64> {
        let behind = |cell: &Vec<Measured>| {
            let best = cell.iter().map(Measured::whole).fold(f64::INFINITY, f64::min);
            cell.first().map_or(0.0, |chosen| chosen.whole() / best - 1.0)
        };
        self.0.iter().map(behind).collect()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, errors) in [("TPS", self.errors(|m| m.tps)), ("TTFT", self.errors(|m| m.ttft))] {
            let at = |share: f64| 100.0 * errors[((errors.len() - 1) as f64 * share) as usize];
            let n = errors.len();
            writeln!(f, "# {name} error of {n}: median {:.1} %, p90 {:.1} %", at(0.5), at(0.9))?;
        }
        let behind = self.behind();
        let near = behind.iter().filter(|behind| **behind <= NEAR).count();
        let (n, most) = (behind.len(), behind.iter().fold(0.0, |a: f64, b| a.max(*b)));
        let (near_by, most) = (100.0 * NEAR, 100.0 * most);
        writeln!(
            f,
            "# search within {near_by:.0} % of the best in {near} of {n} cells, at most {most:.1} % behind"
        )
    }
}
