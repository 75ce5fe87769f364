//! The search for the best layout under the budget.
//!
//! Layers of a model are mostly alike, so the search is over counts and not over 2ⁿ placements: how many attention
//! shards and how many FFN shards are pinned and how many of the others are streamed, whether the output is pinned,
//! how large the ring is ([`counts`]). A coarse grid of counts and all named strategies are tried, the best are
//! improved step by step. Which layers are meant by a count follows from what pinning each saves per byte. Where
//! layers differ, or there are few of them, single shards are then moved and exchanged ([`moves`]).
//!
//! A layout is priced by the timeline only when a bound says that it could be the best so far.

mod counts;
mod moves;

use std::collections::HashSet;

use self::counts::{Counts, Lists};
use crate::error::PlanError;
use crate::placement::Placement;
use crate::plan::{Arranged, Layout, Plan, Prediction, Resident, vram_use};
use crate::price::Price;
use crate::problem::Problem;
use crate::strategy::{Draft, Strategy};
use crate::units::Bytes;

/// The best plan found for a problem.
///
/// # Errors
/// A budget above the card's memory or for a card that does not exist; a model that does not fit in memory; a budget
/// above zero in which nothing fits.
pub fn solve(problem: &Problem<'_>) -> Result<Plan, PlanError> {
    check(problem)?;
    let prices = Price::all(problem);
    let mut search = Search::new(problem, &prices);
    search.run();
    search.into_plan()
}

/// The plan that a named strategy makes of a problem.
///
/// # Errors
/// As [`solve`]; a strategy that has no layout within the budget.
pub fn plan_by(problem: &Problem<'_>, strategy: Strategy) -> Result<Plan, PlanError> {
    check(problem)?;
    let does_not_fit =
        PlanError::StrategyDoesNotFit { strategy: strategy.name(), have: problem.vram };
    let layout = strategy.layout(problem).ok_or(does_not_fit)?;
    Ok(plan_of(problem, layout))
}

/// A layout with all that follows from it.
///
/// # Panics
/// As [`crate::predict`].
pub fn plan_of(problem: &Problem<'_>, layout: Layout) -> Plan {
    let prices = Price::all(problem);
    let arranged = Arranged::of(problem, &prices, &layout).expect("the ring holds each shard");
    let predicted = arranged.predict(problem, &prices);
    let slots = arranged.into_slots();
    let vram = vram_use(problem, &layout);
    Plan { layout, slots, vram, predicted }
}

fn check(problem: &Problem<'_>) -> Result<(), PlanError> {
    let machine = problem.machine;
    let stored = problem.shards.iter().filter(|shard| !shard.shared_with_output);
    let need = stored.map(|shard| shard.weights + shard.kv).sum();
    if need > machine.cpu.ram {
        return Err(PlanError::RamTooSmall { have: machine.cpu.ram, need });
    }
    if problem.vram == Bytes::ZERO {
        return Ok(());
    }
    let Some(gpu) = &machine.gpu else {
        return Err(PlanError::NoGpu { machine: machine.name.clone() });
    };
    if problem.vram > gpu.vram {
        let (asked, vram, gpu) = (problem.vram, gpu.vram, gpu.name.clone());
        return Err(PlanError::MoreThanVram { asked, vram, gpu });
    }
    Ok(())
}

/// The layouts tried so far and the best of them.
struct Search<'a> {
    problem: &'a Problem<'a>,
    draft: Draft<'a>,
    prices: &'a [Price],
    tried: HashSet<Layout>,
    best: Option<(Layout, Prediction)>,
    /// The best time found for a problem without any placement on the GPU is not a success of a budget.
    least_need: Bytes,
}

impl<'a> Search<'a> {
    fn new(problem: &'a Problem<'a>, prices: &'a [Price]) -> Search<'a> {
        let draft = Draft { problem, prices };
        let least_need = Bytes::new(u64::MAX);
        Search { problem, draft, prices, tried: HashSet::new(), best: None, least_need }
    }

    fn run(&mut self) {
        let n = self.problem.shards.len();
        self.try_layout(Layout {
            placements: vec![Placement::Cpu; n],
            ring: Bytes::ZERO,
            resident: Vec::new(),
        });
        if self.problem.vram == Bytes::ZERO {
            return;
        }
        for strategy in Strategy::ALL {
            if let Some(layout) = strategy.layout_priced(&self.draft) {
                self.try_layout(layout);
            }
        }
        let lists = Lists::of(self.problem, self.prices);
        self.search_counts(&lists);
        if !lists.are_plain() {
            self.search_moves();
        }
        self.pin_embedding();
        self.keep_tensors();
    }

    /// The seconds of a layout if they are the best so far.
    fn try_layout(&mut self, layout: Layout) -> Option<f64> {
        let need = vram_use(self.problem, &layout).total();
        if need > Bytes::ZERO {
            self.least_need = self.least_need.min(need);
        }
        if need > self.problem.vram || self.tried.contains(&layout) {
            return None;
        }
        let best = self.best.as_ref().map_or(f64::INFINITY, |(_, best)| best.seconds.get());
        let found = self.price(&layout, best);
        self.tried.insert(layout.clone());
        let predicted = found?;
        let seconds = predicted.seconds.get();
        if seconds < best {
            self.best = Some((layout, predicted));
            return Some(seconds);
        }
        None
    }

    /// What a layout does, unless it certainly takes longer than `limit`.
    fn price(&self, layout: &Layout, limit: f64) -> Option<Prediction> {
        let arranged = Arranged::of(self.problem, self.prices, layout)?;
        let bound = arranged.chain(self.problem, self.prices).bound(self.problem.machine)
            + self.problem.machine.pass.get();
        (bound < limit).then(|| arranged.predict(self.problem, self.prices))
    }

    fn search_counts(&mut self, lists: &Lists) {
        let mut best: Option<(Counts, f64)> = None;
        for counts in lists.grid() {
            self.try_counts(lists, counts, &mut best);
        }
        // The grid's best need not be the best known, which may be a named strategy; it is where steps begin.
        let mut scale = lists.largest_step();
        while let Some((from, _)) = best {
            let before = best.map(|(_, seconds)| seconds);
            for counts in lists.steps(from, scale) {
                self.try_counts(lists, counts, &mut best);
            }
            if best.map(|(_, seconds)| seconds) < before {
                continue;
            }
            if scale == 1 {
                break;
            }
            scale /= 2;
        }
    }

    /// Prices counts, filled up with what fits, and keeps them if they are the best of the counts.
    fn try_counts(&mut self, lists: &Lists, counts: Counts, best: &mut Option<(Counts, f64)>) {
        let Some(counts) = lists.filled(counts, self.problem.vram) else { return };
        let layout = lists.layout(counts, self.problem.shards.len());
        // Pinned shards that are spread are not the ones that were counted, where layers differ.
        let fits = vram_use(self.problem, &layout).total() <= self.problem.vram;
        if !fits || self.tried.contains(&layout) {
            return;
        }
        let limit = best.map_or(f64::INFINITY, |(_, seconds)| seconds);
        let Some(predicted) = self.price(&layout, limit) else {
            self.tried.insert(layout);
            return;
        };
        let seconds = predicted.seconds.get();
        if seconds < limit {
            *best = Some((counts, seconds));
        }
        let known = self.best.as_ref().map_or(f64::INFINITY, |(_, best)| best.seconds.get());
        if seconds < known {
            self.best = Some((layout.clone(), predicted));
        }
        self.tried.insert(layout);
    }

    /// Looks up tokens on the GPU, where there is room to spare.
    fn pin_embedding(&mut self) {
        let Some((layout, _)) = &self.best else { return };
        let mut layout = layout.clone();
        if layout.placements.first() == Some(&Placement::Cpu) {
            layout.placements[0] = Placement::Pinned;
            self.try_layout(layout);
        }
    }

    /// Fills what is left of the budget with tensors of streamed shards, so that less is copied.
    fn keep_tensors(&mut self) {
        let Some((layout, _)) = &self.best else { return };
        let mut layout = layout.clone();
        let used = vram_use(self.problem, &layout).total();
        let mut left = self.problem.vram.saturating_sub(used);
        for (i, placement) in layout.placements.iter().enumerate() {
            if *placement != Placement::Streamed || self.prices[i].chosen.is_some() {
                continue;
            }
            for (tensor, bytes) in self.problem.shards[i].tensors().enumerate() {
                if bytes <= left {
                    left = left.saturating_sub(bytes);
                    layout.resident.push(Resident { shard: i, tensor, bytes });
                }
            }
        }
        if !layout.resident.is_empty() {
            self.try_layout(layout);
        }
    }

    fn into_plan(self) -> Result<Plan, PlanError> {
        let (layout, predicted) = self.best.expect("the CPU alone is always tried");
        let on_gpu = layout.placements.iter().any(|placement| *placement != Placement::Cpu);
        if !on_gpu && self.problem.vram > Bytes::ZERO && self.least_need > self.problem.vram {
            return Err(PlanError::BudgetTooSmall {
                have: self.problem.vram,
                need: self.least_need,
            });
        }
        let arranged = Arranged::of(self.problem, self.prices, &layout);
        let slots = arranged.expect("it was priced").into_slots();
        let vram = vram_use(self.problem, &layout);
        Ok(Plan { layout, slots, vram, predicted })
    }
}
