//! Answers with speculation are those without, event by event: tiny models of every family.

use std::path::{Path, PathBuf};

use backend_cpu::{CpuBackend, CpuOptions};
use engine_core::backend::Backends;
use engine_core::tokenizer::TokenId;
use engine_core::{
    Engine, EngineOptions, Event, FinishReason, KvFormat, Prompt, Request, Sampling, Session,
    Speculated, Speculation,
};

const FAMILIES: [&str; 8] =
    ["llama", "smollm2", "mistral", "qwen2", "qwen3", "qwen3moe", "gemma2", "gemma3"];

fn load(family: &str, n_ctx: u32, n_ubatch: u32) -> Engine {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine-core/tests/data");
    let gguf = |name: &str| -> PathBuf { folder.join(family).join(name) };
    let whole = gguf("model.gguf");
    let path = if whole.exists() { whole } else { gguf("model-00001-of-00002.gguf") };
    let kv = KvFormat::F16;
    let options =
        EngineOptions { n_ctx: Some(n_ctx), n_ubatch, n_outputs: n_ubatch, kv, placing: None };
    let cpu = CpuBackend::new(CpuOptions::default()).unwrap();
    Engine::load(&path, &options, Backends::cpu_only(cpu)).unwrap()
}

/// Prompts that repeat: a period, a text given twice, and one of few words.
fn prompts() -> [Vec<u32>; 3] {
    let text = 20..32;
    [
        (0..15).map(|i| 10 + i % 3).collect(),
        text.clone().chain(text).collect(),
        (0..30).map(|i| 40 + i * i % 7).collect(),
    ]
}

fn request(tokens: &[u32], max_tokens: Option<u32>) -> Request {
    let prompt = Prompt::Tokens(tokens.iter().copied().map(TokenId).collect());
    Request { max_tokens, ..prompt.into() }
}

/// What a caller hears of an answer, but for times.
#[derive(Debug, PartialEq)]
struct Answer {
    tokens: Vec<(TokenId, String)>,
    reason: FinishReason,
    n_prompt: u32,
    n_generated: u32,
}

impl Answer {
    fn text(&self) -> String {
        self.tokens.iter().map(|(_, text)| text.as_str()).collect()
    }
}

fn answer(session: &mut Session<'_>, request: &Request) -> (Answer, Option<Speculated>) {
    let mut tokens = Vec::new();
    for event in session.generate(request).unwrap() {
        match event.unwrap() {
            Event::Token { id, text } => tokens.push((id, text)),
            Event::Done { reason, stats } => {
                let (n_prompt, n_generated) = (stats.n_prompt, stats.n_generated);
                let answer = Answer { tokens, reason, n_prompt, n_generated };
                return (answer, stats.speculated);
            }
        }
    }
    panic!("an answer ends with Done")
}

/// The answer to a request, after checking that it is the same with speculation; and what that did.
fn same(engine: &mut Engine, request: &Request) -> (Answer, Speculated) {
    let (expected, none) = answer(&mut engine.session(), request);
    assert_eq!(none, None, "it is off");
    let [always, paying] = [Speculation::LookupAlways, Speculation::Lookup].map(|speculation| {
        let request = Request { speculation, ..request.clone() };
        let (found, speculated) = answer(&mut engine.session(), &request);
        assert_eq!(found, expected, "{request:?}");
        speculated.expect("it is on")
    });
    assert!(paying.n_accepted <= paying.n_proposed && always.n_accepted <= always.n_proposed);
    (expected, always)
}

/// Makes a model of random weights repeat itself: what it said it says again.
const REPEATING: Sampling = Sampling { frequency_penalty: -0.5, ..Sampling::GREEDY };

#[test]
fn greedy_answers_are_the_same_in_every_family() {
    for family in FAMILIES {
        let mut engine = load(family, 256, 64);
        let mut n_accepted = 0;
        for tokens in prompts() {
            let plain = request(&tokens, Some(120));
            same(&mut engine, &plain);
            let repeating = Request { sampling: REPEATING, ..plain };
            n_accepted += same(&mut engine, &repeating).1.n_accepted;
        }
        assert!(n_accepted > 100, "{family}: {n_accepted}");
    }
}

#[test]
fn sampled_and_penalised_answers_are_the_same() {
    let warm = Sampling { temperature: 0.3, top_p: 0.9, ..Sampling::GREEDY };
    let penalised = Sampling { repeat_penalty: 1.02, penalty_last_n: Some(8), ..Sampling::GREEDY };
    let both = Sampling { frequency_penalty: -0.1, presence_penalty: 0.02, ..warm };
    let mut n_accepted = 0;
    for family in FAMILIES {
        let mut engine = load(family, 256, 64);
        for (seed, sampling) in (1..).zip([warm, penalised, both]) {
            for tokens in prompts() {
                let sampling = Sampling { seed: Some(seed), ..sampling };
                let request = Request { sampling, ..request(&tokens, Some(60)) };
                n_accepted += same(&mut engine, &request).1.n_accepted;
            }
        }
    }
    assert!(n_accepted > 50, "{n_accepted}");
}

#[test]
fn layers_with_a_window_go_back() {
    for family in ["gemma2", "gemma3"] {
        for n_ubatch in [1, 2, 4, 6, 16] {
            let mut engine = load(family, 300, n_ubatch);
            for tokens in prompts() {
                let (_, speculated) = same(&mut engine, &request(&tokens, Some(200)));
                assert_eq!(speculated.n_proposed > 0, n_ubatch > 1);
            }
        }
    }
}

#[test]
fn limits_end_an_answer_at_the_same_token() {
    let tokens = &prompts()[0];
    let mut engine = load("smollm2", 64, 32);
    for max_tokens in 1..40 {
        let (found, _) = same(&mut engine, &request(tokens, Some(max_tokens)));
        assert_eq!(found.tokens.len(), max_tokens as usize);
    }
    for n_ctx in 40..60 {
        let mut engine = load("smollm2", n_ctx, 32);
        let (found, speculated) = same(&mut engine, &request(tokens, None));
        assert_eq!(found.reason, FinishReason::ContextFull);
        assert!(speculated.n_accepted > 0);
    }
}

#[test]
fn stop_texts_end_an_answer_at_the_same_place() {
    let tokens = &prompts()[0];
    let mut engine = load("smollm2", 128, 32);
    let whole = same(&mut engine, &request(tokens, Some(60))).0.text();
    let text: Vec<char> = whole.chars().collect();
    for (start, len) in [(0, 1), (5, 30), (20, 60), (11, 90), (40, 45)] {
        let stop: String = text.iter().skip(start).take(len).collect();
        let request = Request { stop: vec![stop], ..request(tokens, Some(60)) };
        assert_eq!(same(&mut engine, &request).0.reason, FinishReason::Stop);
    }
}

#[test]
fn the_end_of_a_turn_ends_the_answer() {
    let mut n_ended = 0;
    for family in ["smollm2", "qwen2", "gemma3"] {
        let mut engine = load(family, 256, 64);
        let end = engine.tokenizer().end_of_turn().first().expect("an end token").0;
        // The end is in the prompt, so that it is near what is proposed.
        let tokens: Vec<u32> = [20, 21, 22, end].repeat(4);
        for seed in 0..40 {
            let sampling = Sampling { temperature: 1.5, seed: Some(seed), ..Sampling::GREEDY };
            let request = Request { sampling, ..request(&tokens[..14], Some(100)) };
            let (found, _) = same(&mut engine, &request);
            n_ended += usize::from(found.reason == FinishReason::EndOfTurn);
        }
    }
    assert!(n_ended > 3, "{n_ended}");
}

#[test]
fn cancelling_takes_effect_at_the_next_token() {
    let tokens = &prompts()[0];
    let mut engine = load("smollm2", 128, 32);
    let expected = answer(&mut engine.session(), &request(tokens, Some(40))).0;
    let speculative =
        Request { speculation: Speculation::LookupAlways, ..request(tokens, Some(40)) };
    let mut session = engine.session();
    for n_before in 1..25 {
        let cancel = session.cancel();
        let mut events = session.generate(&speculative).unwrap();
        assert!(
            events.by_ref().take(n_before).all(|event| matches!(event, Ok(Event::Token { .. })))
        );
        cancel.cancel();
        match events.next() {
            Some(Ok(Event::Done { reason: FinishReason::Cancelled, stats })) => {
                assert_eq!(stats.n_generated as usize, n_before);
            }
            other => panic!("{other:?} after {n_before} tokens"),
        }
        assert!(events.next().is_none());
        // The session is usable again, and so it is after an answer that nobody hears to the end.
        assert_eq!(answer(&mut session, &speculative).0, expected);
        session.generate(&speculative).unwrap().take(n_before).for_each(drop);
    }
}

#[test]
fn a_conversation_goes_on_from_what_was_run() {
    for family in ["smollm2", "gemma2"] {
        let mut engine = load(family, 256, 32);
        let [first, second, _] = prompts();
        let turns = |engine: &mut Engine, speculation| {
            let mut session = engine.session();
            let mut tokens = first.clone();
            let turns = [&second, &first, &second].map(|more| {
                let request = Request { speculation, ..request(&tokens, Some(30)) };
                let found = answer(&mut session, &request).0;
                tokens.extend(found.tokens.iter().map(|(id, _)| id.0).take(25));
                tokens.extend(more);
                found
            });
            Vec::from(turns)
        };
        let expected = turns(&mut engine, Speculation::Off);
        assert_eq!(turns(&mut engine, Speculation::LookupAlways), expected, "{family}");
    }
}
