//! A device of which one call fails: the error says so, and the same request then gets the same answer.

mod placing;

use backend_cpu::{SimOptions, SimulatedGpu};
use engine_core::backend::{BackendError, Backends};
use engine_core::testing::{Call, Fault, Faulty};
use engine_core::tokenizer::TokenId;
use engine_core::{Engine, EngineError, Event, Plans, Prompt, Request, Session};
use planner::{Bytes, BytesPerSec, Method, Strategy};

use self::placing::{cpu, gguf_of, options, placing};

const FAMILIES: [&str; 3] = ["smollm2", "qwen3moe", "gemma3"];

/// Budgets and methods that leave some shards in each place.
const PLANS: [(u64, Method); 4] = [
    (100 << 10, Method::Search),
    (200 << 10, Method::Search),
    (160 << 10, Method::Strategy(Strategy::ShardAttention)),
    (100 << 10, Method::BestStrategy),
];

struct Faults {
    cpu: Fault,
    gpu: Fault,
}

impl Faults {
    fn none() -> Faults {
        Faults { cpu: Fault::default(), gpu: Fault::default() }
    }

    fn load(&self, family: &str, (vram, method): (u64, Method)) -> Result<Engine, EngineError> {
        let sim = SimOptions {
            vram: Bytes::new(vram),
            pcie: BytesPerSec::new(1e12),
            ..SimOptions::default()
        };
        let backends = Backends {
            cpu: Box::new(Faulty::new(cpu(), &self.cpu)),
            gpu: Some(Box::new(Faulty::new(SimulatedGpu::new(sim).unwrap(), &self.gpu))),
        };
        let placing = placing(Bytes::new(vram), Plans::By(method));
        Engine::load(&gguf_of(family), &options(Some(placing)), backends)
    }
}

/// Answers with a prompt of several passes, then token by token.
fn answer(session: &mut Session<'_>) -> Result<Vec<TokenId>, EngineError> {
    let prompt = Prompt::Tokens((0..23).map(|i| TokenId(3 + (i * 7) % 50)).collect());
    let request = Request { max_tokens: Some(6), ..prompt.into() };
    let mut ids = Vec::new();
    for event in session.generate(&request)? {
        if let Event::Token { id, .. } = event? {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// Numbers of calls that go well first: all small ones, then ever fewer.
fn counts() -> impl Iterator<Item = usize> {
    std::iter::successors(Some(0), |n| Some(n + 1 + n / 3))
}

#[track_caller]
fn check(error: &EngineError, expected: &str, call: Call) {
    let EngineError::Backend(BackendError::Failed { device, call: failed }) = error else {
        panic!("{error:?} for {call:?}")
    };
    assert_eq!((device.as_str(), *failed), (expected, call.name()));
    assert_eq!(error.to_string(), format!("{device}: {failed} failed"));
}

#[test]
fn a_session_goes_on_after_a_failure() {
    for family in FAMILIES {
        for plan in PLANS {
            let faults = Faults::none();
            let mut engine = faults.load(family, plan).unwrap();
            let mut session = engine.session();
            let expected = answer(&mut session).unwrap();
            for (name, fault) in [("cpu", &faults.cpu), ("sim", &faults.gpu)] {
                for call in Call::ALL {
                    for n in counts() {
                        session.clear();
                        fault.set(call, n);
                        let result = answer(&mut session);
                        if fault.clear() {
                            assert_eq!(result.unwrap(), expected);
                            break;
                        }
                        check(&result.unwrap_err(), name, call);
                        let again = answer(&mut session).unwrap();
                        assert_eq!(again, expected, "{family}, {plan:?}, after {n} of {call:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_failure_while_loading_is_told() {
    for family in FAMILIES {
        for plan in PLANS {
            let faults = Faults::none();
            for (name, fault) in [("cpu", &faults.cpu), ("sim", &faults.gpu)] {
                for call in Call::ALL {
                    for n in counts() {
                        fault.set(call, n);
                        let result = faults.load(family, plan);
                        if fault.clear() {
                            assert!(result.is_ok());
                            break;
                        }
                        check(&result.err().expect("a call failed"), name, call);
                    }
                }
            }
        }
    }
}
