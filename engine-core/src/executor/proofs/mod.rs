//! Random plans and passes on devices that show whether the executor is right: nothing is used in no certain order, what
//! comes out is what the CPU alone gives, and as much is copied as the plan says.

mod bench;
mod drawn;
mod made;
mod traffic;

use proptest::prelude::*;

use self::bench::{Bench, Model};
use self::drawn::{DrawnFault, DrawnPass, DrawnPlans, faults, passes, plans};
use self::made::many_unequal_layers;
use crate::backend::BackendError;
use crate::cancel::Cancel;
use crate::executor::ExecutorError;

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Runs passes of a plan, each checked by what the CPU alone gives and by what is copied.
fn run(model: &Model, plans: &DrawnPlans, passes: &[DrawnPass]) {
    let mut bench = Bench::new(model, plans);
    for pass in passes {
        let inputs = bench.inputs(pass);
        if pass.is_cancelled {
            let cancel = Cancel::default();
            cancel.cancel();
            let result = bench.run_placed(&inputs, pass.n_after, &cancel);
            assert!(matches!(result, Err(ExecutorError::Cancelled)), "{result:?}");
            bench.forget_pass(&inputs);
        }
        let logits = bench.run_placed(&inputs, pass.n_after, &Cancel::default()).unwrap();
        assert_eq!(logits, bench.run_on_cpu(&inputs));
        bench.check_traffic(&inputs, pass.n_after);
    }
    bench.end();
}

/// Runs passes of a plan, in some of which a call fails once. Such a pass is run again, or given up.
fn run_with_faults(model: &Model, plans: &DrawnPlans, passes: &[DrawnPass], faults: &[DrawnFault]) {
    let mut bench = Bench::new(model, plans);
    for (pass, fault) in passes.iter().zip(faults) {
        let inputs = bench.inputs(pass);
        bench.set(fault);
        let result = bench.run_placed(&inputs, pass.n_after, &Cancel::default());
        let was_met = !bench.clear_fault();
        let logits = match result {
            Err(ExecutorError::Backend(BackendError::Failed { call, .. })) if was_met => {
                assert_eq!(call, fault.call.name());
                // The first of several ubatches may have lost cells outside of its successors' windows.
                if fault.gives_up || inputs.len() > 1 {
                    bench.give_up(pass);
                    continue;
                }
                bench.run_placed(&inputs, pass.n_after, &Cancel::default()).unwrap()
            }
            other => other.unwrap(),
        };
        assert_eq!(logits, bench.run_on_cpu(&inputs), "after {fault:?}");
    }
    bench.end();
}

macro_rules! for_each_model {
    ($($name:ident, $faulty:ident: $model:expr;)*) => {
        $(
            #[test]
            fn $name() {
                let model = $model;
                proptest!(config(500), |(plans in plans(), passes in passes())| {
                    run(&model, &plans, &passes);
                });
            }

            #[test]
            fn $faulty() {
                let model = $model;
                proptest!(config(250), |(plans in plans(), passes in passes(), faults in faults())| {
                    run_with_faults(&model, &plans, &passes, &faults);
                });
            }
        )*
    };
}

for_each_model! {
    llama, llama_with_faults: Model::fixture("llama");
    with_biases, with_biases_and_faults: Model::fixture("qwen2");
    with_experts, with_experts_and_faults: Model::fixture("qwen3moe");
    with_windows, with_windows_and_faults: Model::fixture("gemma2");
    with_more_layers, with_more_layers_and_faults: Model::fixture("gemma3");
    with_unequal_layers, with_unequal_layers_and_faults: Model::made(&many_unequal_layers());
}
