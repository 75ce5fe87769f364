//! What a little more VRAM, or a shorter context, would bring.

use crate::forecast::{Forecast, Method, Setting, Workload, forecast, no_worse_than};
use crate::units::Bytes;

/// Two changes to a request, with what each comes to. `None` where a change is impossible or has no plan.
#[derive(Debug, Clone, PartialEq)]
pub struct WhatIf {
    /// Another GiB of VRAM, or what the card has left.
    pub more_vram: Option<Variation>,
    /// A context of half the length, with a prompt that is shorter where it would no longer fit.
    pub half_ctx: Option<Variation>,
}

/// A changed request.
#[derive(Debug, Clone, PartialEq)]
pub struct Variation {
    /// What it comes to; its budget and workload are the changed ones.
    pub forecast: Forecast,
}

/// Forecasts a request again with one more GiB, and with half the context. More VRAM is no slower than what is `known`
/// of the request as it is, where layouts are searched for.
pub fn what_if(
    setting: &Setting<'_>,
    workload: Workload,
    method: Method,
    known: Option<&Forecast>,
) -> WhatIf {
    let again = |vram, workload| {
        let forecast = forecast(&Setting { vram, ..*setting }, workload, method).ok()?;
        Some(Variation { forecast })
    };
    let more = |vram| {
        let Variation { mut forecast } = again(vram, workload)?;
        if let Some(known) = known.filter(|_| method == Method::Search) {
            forecast = no_worse_than(&Setting { vram, ..*setting }, forecast, known);
        }
        Some(Variation { forecast })
    };
    WhatIf {
        more_vram: more_vram(setting).and_then(more),
        half_ctx: half(workload).and_then(|half| again(setting.vram, half)),
    }
}

fn more_vram(setting: &Setting<'_>) -> Option<Bytes> {
    let card = setting.machine.gpu.as_ref()?.vram;
    let more = (setting.vram + Bytes::gib(1)).min(card);
    (more > setting.vram).then_some(more)
}

fn half(workload: Workload) -> Option<Workload> {
    let n_ctx = workload.n_ctx / 2;
    let room = n_ctx.checked_sub(workload.n_gen).filter(|room| *room > 0)?;
    Some(Workload { n_ctx, n_prompt: workload.n_prompt.min(room), n_gen: workload.n_gen })
}
