//! Measures plans on a slow CPU beside a simulated GPU, both at a set pace, with what was predicted for each, as CSV: the
//! search's, each named strategy's, and the best of many drawn by chance. `compare_placements` says what the rows come
//! to.
//!
//! ```text
//! baton profile --device sim --sim vram=1GiB,pcie=0.3GB/s,gpu=5GB/s:60GFLOPS,cpu=1GB/s:10GFLOPS -j1 -o sim.toml
//! cargo run --release -p benches --example placements -- sim.toml MODEL.gguf 10,25,50,80 64,512 9 20 1 > results.csv
//! ```
//! Budgets are percent of the model's file, prompts and answers are in tokens; 20 drawn plans are measured besides. Each
//! round measures an answer under every plan, and the fastest counts. The paces stand to each other and to the link as
//! in a PC, and are so slow that kernels are done in time even while other work disturbs the machine.

mod drawn;

use std::env;
use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use backend_cpu::{CpuBackend, CpuOptions, Pace, SimOptions, SimulatedGpu};
use benches::answers::answer;
use engine_core::backend::Backends;
use engine_core::trace::Account;
use engine_core::{Engine, EngineError, EngineOptions, Placing, Plans};
use planner::{Bytes, BytesPerSec, FlopsPerSec, MachineProfile, Method, Strategy, Workload};

const CPU: Pace = Pace { memory: BytesPerSec::new(1e9), compute: FlopsPerSec::new(10e9) };
const GPU: Pace = Pace { memory: BytesPerSec::new(5e9), compute: FlopsPerSec::new(60e9) };

fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [machine, model, budgets, prompts, n_gen, n_drawn, n_rounds] = &args[..] else {
        bail!(
            "give a profile, a model, budgets, prompts, tokens of an answer, and how many drawn plans and rounds"
        )
    };
    let machine = MachineProfile::from_toml(&std::fs::read_to_string(machine)?)?;
    let (n_gen, n_drawn, n_rounds) = (n_gen.parse()?, n_drawn.parse()?, n_rounds.parse()?);
    let bench = Bench { machine, model: model.into(), n_gen, n_drawn, n_rounds };
    // All of it read once, so that no answer waits for the disk.
    let size = io::copy(&mut File::open(model)?, &mut io::sink())?;
    println!(
        "model,vram_mib,n_prompt,n_gen,plan,ttft_s,predicted_ttft_s,tps,predicted_tps,cpu_s,gpu_s,hidden_s,exposed_s"
    );
    for n_prompt in numbers(prompts)? {
        for percent in numbers(budgets)? {
            bench.cell(Bytes::new(size * u64::from(percent) / 100), n_prompt)?;
        }
    }
    Ok(())
}

fn numbers(list: &str) -> Result<Vec<u32>> {
    list.split(',').map(|n| n.parse().with_context(|| format!("{n} is no number"))).collect()
}

/// Between two answers of a person's, in which the ring is filled for the next.
const PAUSE: Duration = Duration::from_millis(500);

/// A model on a machine.
struct Bench {
    machine: MachineProfile,
    model: PathBuf,
    n_gen: u32,
    /// Plans drawn by chance to measure.
    n_drawn: usize,
    /// Answers measured under each plan.
    n_rounds: usize,
}

impl Bench {
    /// Measures all plans under one budget.
    fn cell(&self, vram: Bytes, n_prompt: u32) -> Result<()> {
        let named = [Method::Search].into_iter().chain(Strategy::ALL.map(Method::Strategy));
        let named = named.map(|method| (name(method).to_owned(), Plans::By(method)));
        let drawn = drawn::best(self, vram, n_prompt)?.into_iter().enumerate();
        let drawn = drawn.map(|(i, plan)| (format!("drawn-{}", i + 1), Plans::Saved(plan)));
        let mut all: Vec<_> = named.chain(drawn).map(|plans| (plans, Vec::new())).collect();
        for _ in 0..self.n_rounds {
            for ((_, plans), rounds) in &mut all {
                match self.measure(vram, n_prompt, plans.clone()) {
                    Ok(measured) => rounds.push(measured),
                    // This strategy has no plan within the budget.
                    Err(error) if matches!(error.downcast_ref(), Some(EngineError::Plan(_))) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        for ((name, _), rounds) in all {
            if !rounds.is_empty() {
                self.print(vram, n_prompt, &name, &Measured::fastest(rounds));
            }
        }
        Ok(())
    }

    fn options(&self, n_prompt: u32, placing: Option<Placing>) -> EngineOptions {
        let n_ctx = Some(n_prompt + self.n_gen + 15);
        EngineOptions { n_ctx, placing, ..EngineOptions::default() }
    }

    fn load(&self, vram: Bytes, n_prompt: u32, plans: Plans) -> Result<Engine> {
        let cpu =
            CpuOptions { threads: NonZeroUsize::MIN, pace: Some(CPU), ..CpuOptions::default() };
        let pcie = self.machine.gpu.as_ref().context("the profile has no GPU")?.link.h2d;
        // What the profile found is a little less than what was set: then the link is as fast as it was.
        let sim = SimOptions { vram, pcie, pace: Some(GPU), ..SimOptions::default() };
        let backends = Backends {
            cpu: Box::new(CpuBackend::new(cpu)?),
            gpu: Some(Box::new(SimulatedGpu::new(sim)?)),
        };
        let placing = Placing {
            machine: self.machine.clone(),
            vram: Some(vram),
            plans,
            n_gen: self.n_gen.min(Workload::SHORT_ANSWER),
        };
        Ok(Engine::load(&self.model, &self.options(n_prompt, Some(placing)), backends)?)
    }

    fn measure(&self, vram: Bytes, n_prompt: u32, plans: Plans) -> Result<Measured> {
        let mut engine = self.load(vram, n_prompt, plans)?;
        answer(&mut engine, 2, 2)?;
        thread::sleep(PAUSE);
        engine.trace();
        let (_, stats) = answer(&mut engine, n_prompt, self.n_gen)?;
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
        let account = Account::of(&trace);
        let lanes = [account.cpu, account.gpu, account.hidden, account.exposed];
        Ok(Measured {
            ttft: [stats.ttft.get(), predicted_ttft],
            tps: [stats.tps().context("several tokens")?, predicted_tps],
            lanes: lanes.map(|time| time.get()),
        })
    }

    fn print(&self, vram: Bytes, n_prompt: u32, name: &str, measured: &Measured) {
        let Measured { ttft, tps, lanes: [cpu, gpu, hidden, exposed] } = measured;
        let n_gen = self.n_gen;
        let model = self.model.file_stem().unwrap_or_default().to_string_lossy();
        let vram = vram.get() as f64 / Bytes::mib(1).get() as f64;
        println!(
            "{model},{vram:.1},{n_prompt},{n_gen},{name},{:.4},{:.4},{:.3},{:.3},{cpu:.4},{gpu:.4},{hidden:.4},{exposed:.4}",
            ttft[0], ttft[1], tps[0], tps[1]
        );
    }
}

/// What an answer took, measured and predicted. Seconds and tokens per second.
struct Measured {
    ttft: [f64; 2],
    tps: [f64; 2],
    /// CPU, GPU, copies hidden and exposed.
    lanes: [f64; 4],
}

impl Measured {
    /// The fastest, TTFT and TPS each by itself.
    fn fastest(mut rounds: Vec<Measured>) -> Measured {
        rounds.sort_by(|a, b| a.ttft[0].total_cmp(&b.ttft[0]));
        let ttft = rounds[0].ttft;
        rounds.sort_by(|a, b| b.tps[0].total_cmp(&a.tps[0]));
        Measured { ttft, ..rounds.swap_remove(0) }
    }
}

fn name(method: Method) -> &'static str {
    match method {
        Method::Search => "search",
        Method::BestStrategy => "best-strategy",
        Method::Strategy(strategy) => strategy.name(),
    }
}
