//! How often the search finds a slower plan with more VRAM, or on a faster machine, over many random problems.
//!
//! `cargo run --release -p planner --example never_slower -- 6000`

#[path = "../tests/parts/mod.rs"]
mod parts;
#[path = "../tests/random/mod.rs"]
mod random;

use parts::{Parts, faster_machine};
use planner::Bytes;
use random::Random;

/// Slower by less than this is rounding.
const ROUNDING: f64 = 1e-9;

/// How much slower the second of two plans of a problem is, where it is slower.
#[derive(Default)]
struct Count {
    compared: usize,
    slower: Vec<(f64, u64)>,
}

impl Count {
    fn add(&mut self, seed: u64, before: f64, after: f64) {
        self.compared += 1;
        if after > before * (1.0 + ROUNDING) {
            self.slower.push((after / before - 1.0, seed));
        }
    }

    fn print(&mut self, what: &str) {
        self.slower.sort_by(|a, b| b.0.total_cmp(&a.0));
        println!("{what}: {} of {} slower", self.slower.len(), self.compared);
        for (by, seed) in self.slower.iter().take(20) {
            println!("  {:.3} % (seed {seed})", 100.0 * by);
        }
    }
}

fn main() {
    let n = std::env::args().nth(1).map_or(6000, |n| n.parse().expect("a number of problems"));
    let (mut vram, mut machine) = (Count::default(), Count::default());
    for seed in 0..n {
        let parts = Parts::random(seed);
        let Some(plan) = parts.solve(&parts.machine, parts.vram) else { continue };
        let seconds = plan.predicted.seconds.get();
        let mut random = Random::new(!seed);
        let larger = Bytes::new((parts.vram.get() as f64 * (1.0 + random.share())) as u64);
        let with_more = parts.solve(&parts.machine, larger).expect("what fits still fits");
        vram.add(seed, seconds, with_more.predicted.seconds.get());
        let (part, factor) = (random.below(4) as u8, 1.0 + 2.0 * random.share());
        let faster = faster_machine(&parts.machine, part, factor);
        let on_faster = parts.solve(&faster, parts.vram).expect("what fits still fits");
        machine.add(seed, seconds, on_faster.predicted.seconds.get());
    }
    vram.print("more VRAM");
    machine.print("a faster machine");
}
