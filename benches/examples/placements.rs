//! Measures plans on a slow CPU beside a simulated GPU, with what was predicted for each, as CSV.
//!
//! ```text
//! baton profile --device sim --sim vram=2GiB,pcie=0.3GB/s,threads=1 -j1 --isa scalar -o sim.toml
//! cargo run --release -p benches --example placements -- sim.toml MODEL.gguf 10,25,50,80 64,512 > results.csv
//! ```
//! Budgets are percent of the model's file, prompts are in tokens. The CPU computes with its plain kernels and the GPU with
//! the best ones, on a thread each, so that the two and the link stand to each other as in a PC, only slower.

use std::env;
use std::num::NonZeroUsize;
use std::path::Path;

use anyhow::{Context, Result, bail};
use backend_cpu::{CpuBackend, CpuOptions, Isa, KernelTable, SimOptions, SimulatedGpu};
use benches::answers::answer;
use engine_core::backend::Backends;
use engine_core::{Engine, EngineError, EngineOptions, Placing, Plans};
use planner::{Bytes, MachineProfile, Method, Strategy};

/// Tokens of an answer.
const N_GEN: u32 = 33;

/// Answers of which the one in the middle counts.
const ROUNDS: usize = 3;

fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [machine, model, budgets, prompts] = &args[..] else {
        bail!("give a profile, a model, budgets in percent of its file, and prompts in tokens")
    };
    let machine = MachineProfile::from_toml(&std::fs::read_to_string(machine)?)?;
    let model = Path::new(model);
    let size = std::fs::metadata(model)?.len();
    println!(
        "model,vram_mib,n_prompt,method,ttft_s,predicted_ttft_s,tps,predicted_tps,cpu_s,gpu_s,hidden_s,exposed_s"
    );
    for n_prompt in numbers(prompts)? {
        for percent in numbers(budgets)? {
            let vram = Bytes::new(size * u64::from(percent) / 100);
            for method in methods() {
                let cell = Cell { machine: &machine, model, vram, n_prompt, method };
                match cell.measure() {
                    Ok(row) => println!("{row}"),
                    // This strategy has no plan within the budget.
                    Err(error) if is_refused(&error) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
    Ok(())
}

fn numbers(list: &str) -> Result<Vec<u32>> {
    list.split(',').map(|n| n.parse().with_context(|| format!("{n} is no number"))).collect()
}

fn methods() -> impl Iterator<Item = Method> {
    [Method::Search].into_iter().chain(Strategy::ALL.map(Method::Strategy))
}

fn is_refused(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(EngineError::Plan(_)))
}

/// One plan to measure.
struct Cell<'a> {
    machine: &'a MachineProfile,
    model: &'a Path,
    vram: Bytes,
    n_prompt: u32,
    method: Method,
}

/// What one answer took, measured and predicted. Seconds and tokens per second.
struct Round {
    ttft: [f64; 2],
    tps: [f64; 2],
    /// CPU, GPU, copies hidden and exposed.
    lanes: [f64; 4],
}

impl Cell<'_> {
    fn load(&self) -> Result<Engine> {
        let plain = KernelTable::for_isa(Isa::Scalar).context("every CPU has plain kernels")?;
        let cpu = CpuOptions { threads: NonZeroUsize::MIN, kernels: plain };
        let pcie = self.machine.gpu.as_ref().context("the profile has no GPU")?.link.h2d;
        // What the profile found is a little less than what was set: then the link is as fast as it was.
        let sim = SimOptions { vram: self.vram, pcie, ..SimOptions::default() };
        let backends = Backends {
            cpu: Box::new(CpuBackend::new(cpu)?),
            gpu: Some(Box::new(SimulatedGpu::new(sim)?)),
        };
        let (machine, plans) = (self.machine.clone(), Plans::By(self.method));
        let placing = Some(Placing { machine, vram: Some(self.vram), plans });
        let n_ctx = Some(self.n_prompt + N_GEN + 15);
        Ok(Engine::load(
            self.model,
            &EngineOptions { n_ctx, placing, ..EngineOptions::default() },
            backends,
        )?)
    }

    fn measure(&self) -> Result<String> {
        let mut engine = self.load()?;
        answer(&mut engine, 16, 3)?;
        let mut rounds =
            (0..ROUNDS).map(|_| self.round(&mut engine)).collect::<Result<Vec<_>>>()?;
        rounds.sort_by(|a, b| a.ttft[0].total_cmp(&b.ttft[0]));
        let ttft = rounds[ROUNDS / 2].ttft;
        rounds.sort_by(|a, b| a.tps[0].total_cmp(&b.tps[0]));
        let Round { tps, lanes, .. } = rounds[ROUNDS / 2];
        let method = match self.method {
            Method::Search => "search",
            Method::BestStrategy => "best-strategy",
            Method::Strategy(strategy) => strategy.name(),
        };
        let model = self.model.file_stem().unwrap_or_default().to_string_lossy();
        let vram = self.vram.get() as f64 / Bytes::mib(1).get() as f64;
        let [cpu, gpu, hidden, exposed] = lanes;
        Ok(format!(
            "{model},{vram:.1},{},{method},{:.4},{:.4},{:.3},{:.3},{cpu:.4},{gpu:.4},{hidden:.4},{exposed:.4}",
            self.n_prompt, ttft[0], ttft[1], tps[0], tps[1]
        ))
    }

    fn round(&self, engine: &mut Engine) -> Result<Round> {
        engine.trace();
        let (_, stats) = answer(engine, self.n_prompt, N_GEN)?;
        let trace = engine.take_trace()?;
        let times: Vec<(u32, f64)> = trace
            .passes
            .iter()
            .filter_map(|pass| Some((pass.n_tokens, engine.predicted(pass)?.0.get())))
            .collect();
        let (prefill, decode): (Vec<_>, Vec<_>) = times.iter().partition(|(n, _)| *n > 1);
        let sum = |passes: &[(u32, f64)]| passes.iter().map(|(_, time)| time).sum::<f64>();
        let predicted_ttft = self.machine.request.get() + sum(&prefill);
        let predicted_tps = decode.len() as f64 / sum(&decode);
        let account = engine_core::trace::Account::of(&trace);
        Ok(Round {
            ttft: [stats.ttft.get(), predicted_ttft],
            tps: [stats.tps().context("several tokens")?, predicted_tps],
            lanes: [account.cpu, account.gpu, account.hidden, account.exposed]
                .map(|time| time.get()),
        })
    }
}
