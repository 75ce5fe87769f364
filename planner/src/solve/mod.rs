//! The search for the best layout under the budget.
//!
//! Layers of a model are mostly alike, so the search is over counts and not over 2ⁿ placements: how many attention
//! shards and how many FFN shards are pinned and how many of the others are streamed, where the output is, how large
//! the ring is ([`lattice`]). A coarse grid of this lattice is priced by the timeline in the order of a bound that
//! costs next to nothing ([`bound`]), until no other member can be better; from the best of several kinds the search
//! goes on in ever smaller steps, and leaves those behind that stay back ([`climb`]). At the end, but for the largest
//! models, the members of the lowest bounds are priced, wherever they are ([`ridge`]). Where layers differ, or there are
//! few of them, single shards are then moved and exchanged ([`moves`]). All named strategies are tried, too.

mod bound;
mod climb;
mod counts;
mod fill;
mod lattice;
mod list;
mod moves;
mod ridge;

use std::collections::HashMap;

pub(crate) use self::bound::Bound;
use self::counts::Counts;
use self::fill::fill;
use self::lattice::Lattice;
use crate::arrange::Arranged;
use crate::error::PlanError;
use crate::placement::Placement;
use crate::plan::{Layout, Plan, Prediction, vram_use};
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
    let need = least_need(problem, &prices);
    if problem.vram > Bytes::ZERO && need > problem.vram {
        return Err(PlanError::BudgetTooSmall { have: problem.vram, need });
    }
    let mut search = Search::new(problem, &prices);
    search.run();
    search.into_plan().ok_or(PlanError::BudgetTooSmall { have: problem.vram, need })
}

/// The least VRAM with which the GPU can do anything: that of one shard alone.
fn least_need(problem: &Problem<'_>, prices: &[Price]) -> Bytes {
    let driver = problem.machine.gpu.as_ref().map_or(Bytes::ZERO, |gpu| gpu.driver);
    let alone = problem.shards.iter().zip(prices).skip(1).map(|(shard, price)| {
        shard.scratch + (shard.weights + shard.kv).min(price.streaming().slot)
    });
    driver + problem.waiting_residuals() + alone.min().unwrap_or_default()
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

/// What a layout does, if its ring holds each streamed shard and a pass takes less than `limit` seconds.
pub(crate) fn predict_below(
    problem: &Problem<'_>,
    prices: &[Price],
    bound: &Bound,
    layout: &Layout,
    limit: f64,
) -> Option<Prediction> {
    let arranged = Arranged::of(problem, prices, layout)?;
    let chain = arranged.chain(problem, prices);
    if bound.of_chain(&chain) >= limit {
        return None;
    }
    arranged.predict_below(&chain, problem, prices, limit)
}

pub(crate) fn check(problem: &Problem<'_>) -> Result<(), PlanError> {
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

/// The best layout so far.
struct Search<'a> {
    problem: &'a Problem<'a>,
    draft: Draft<'a>,
    prices: &'a [Price],
    bound: Bound,
    best: Option<(Layout, Prediction)>,
    /// Seconds that members of the lattice take at least, as far as they were priced.
    least: HashMap<Counts, f64>,
}

impl<'a> Search<'a> {
    fn new(problem: &'a Problem<'a>, prices: &'a [Price]) -> Search<'a> {
        let draft = Draft { problem, prices };
        let (bound, least) = (Bound::of(problem), HashMap::new());
        Search { problem, draft, prices, bound, best: None, least }
    }

    fn run(&mut self) {
        let placements = vec![Placement::Cpu; self.problem.shards.len()];
        self.try_layout(Layout { placements, ring: Bytes::ZERO, resident: Vec::new() });
        if self.problem.vram == Bytes::ZERO {
            return;
        }
        for strategy in Strategy::ALL {
            if let Some(layout) = strategy.layout_priced(&self.draft) {
                self.try_layout(layout);
            }
        }
        let lattice = Lattice::of(self.problem, self.prices);
        self.search_lattice(&lattice);
        if !lattice.is_plain() {
            self.search_moves();
            self.fill_rest(lattice.least_tensor);
        }
    }

    /// Seconds of the best layout so far.
    fn limit(&self) -> f64 {
        self.best.as_ref().map_or(f64::INFINITY, |(_, best)| best.seconds.get())
    }

    /// Keeps a layout if it fits and is the best so far.
    fn try_layout(&mut self, layout: Layout) {
        if !self.draft.fits(&layout) {
            return;
        }
        let limit = self.limit();
        if let Some(predicted) = self.price(&layout, limit)
            && predicted.seconds.get() < limit
        {
            self.best = Some((layout, predicted));
        }
    }

    /// What a layout does, unless it certainly takes longer than `limit`.
    fn price(&self, layout: &Layout, limit: f64) -> Option<Prediction> {
        predict_below(self.problem, self.prices, &self.bound, layout, limit)
    }

    /// Puts what moves have left of the budget to use.
    fn fill_rest(&mut self, least_tensor: Bytes) {
        let Some((layout, _)) = &self.best else { return };
        let mut layout = Layout { resident: Vec::new(), ..layout.clone() };
        let used = vram_use(self.problem, &layout).total();
        let left = self.problem.vram.saturating_sub(used);
        fill(self.problem, self.prices, &mut layout, left, least_tensor);
        self.try_layout(layout);
    }

    /// `None` when nothing fits, as can be where the GPU has a part of each FFN.
    fn into_plan(self) -> Option<Plan> {
        let (layout, predicted) = self.best?;
        let arranged = Arranged::of(self.problem, self.prices, &layout);
        let slots = arranged.expect("it was priced").into_slots();
        let vram = vram_use(self.problem, &layout);
        Some(Plan { layout, slots, vram, predicted })
    }
}
