//! Sessions on tiny models: the generate loop, its limits and its ends.

use std::path::Path;

use backend_cpu::{CpuBackend, CpuOptions};
use engine_core::backend::Backends;
use engine_core::perplexity::Chunk;
use engine_core::tokenizer::{Message, TokenId};
use engine_core::{
    Engine, EngineError, EngineOptions, Event, FinishReason, Prompt, Request, Session, Stats,
};

fn load(options: EngineOptions) -> Result<Engine, EngineError> {
    load_model("smollm2", options)
}

fn load_model(name: &str, options: EngineOptions) -> Result<Engine, EngineError> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine-core/tests/data");
    let cpu = CpuBackend::new(CpuOptions::default()).unwrap();
    let path = data.join(name).join("model.gguf");
    Engine::load(&path, &options, Backends::cpu_only(cpu))
}

fn engine(n_ctx: u32) -> Engine {
    load(EngineOptions { n_ctx: Some(n_ctx), ..EngineOptions::default() }).unwrap()
}

fn request(tokens: impl IntoIterator<Item = u32>, max_tokens: u32) -> Request {
    let prompt = Prompt::Tokens(tokens.into_iter().map(TokenId).collect());
    Request { max_tokens: Some(max_tokens), ..prompt.into() }
}

struct Answer {
    ids: Vec<TokenId>,
    text: String,
    reason: FinishReason,
    stats: Stats,
}

fn answer(session: &mut Session<'_>, request: &Request) -> Answer {
    let (mut ids, mut text) = (Vec::new(), String::new());
    for event in session.generate(request).unwrap() {
        match event.unwrap() {
            Event::Token { id, text: piece } => {
                ids.push(id);
                text += &piece;
            }
            Event::Done { reason, stats } => return Answer { ids, text, reason, stats },
        }
    }
    panic!("an answer ends with Done")
}

fn refusal(session: &mut Session<'_>, request: &Request) -> EngineError {
    session.generate(request).err().expect("the request is refused")
}

#[test]
fn greedy_decoding_follows_the_largest_logits() {
    let mut engine = engine(64);
    let prompt = [5, 9, 40, 41, 42];
    let found = answer(&mut engine.session(), &request(prompt, 8));
    let mut tokens: Vec<_> = prompt.into_iter().map(TokenId).collect();
    for &id in &found.ids {
        let chunk = Chunk { tokens: tokens.clone(), scored: tokens.len() - 1..tokens.len() };
        let mut best = 0;
        let mut session = engine.session();
        session
            .score(&chunk, |_, row| {
                best = (0..row.len()).rev().max_by(|&a, &b| row[a].total_cmp(&row[b])).unwrap();
            })
            .unwrap();
        assert_eq!(id, TokenId(best as u32));
        tokens.push(id);
    }
    let stats = found.stats;
    assert_eq!((stats.n_prompt, stats.n_reused), (5, 0));
    assert_eq!(stats.n_generated as usize, found.ids.len());
    assert_eq!(found.text.is_empty(), found.ids.is_empty());
}

#[test]
fn what_was_run_before_is_not_run_again() {
    let mut engine = engine(64);
    let mut session = engine.session();
    let first = answer(&mut session, &request([5, 9, 40, 41], 4));
    let again = answer(&mut session, &request([5, 9, 40, 41], 4));
    assert_eq!((again.stats.n_reused, &again.ids), (3, &first.ids), "all but the last token");
    let branch = answer(&mut session, &request([5, 9, 50, 51, 52], 4));
    assert_eq!(branch.stats.n_reused, 2);
    drop(session);
    let fresh = answer(&mut engine.session(), &request([5, 9, 50, 51, 52], 4));
    assert_eq!((fresh.stats.n_reused, fresh.ids), (0, branch.ids));
}

#[test]
fn what_a_window_has_forgotten_is_run_again() {
    let options = EngineOptions { n_ctx: Some(100), n_ubatch: 6, ..EngineOptions::default() };
    let mut engine = load_model("gemma2", options).unwrap();
    let prompt: Vec<u32> = (5..45).collect();
    let branch = |len: usize| request(prompt[..len].iter().copied().chain([60, 61]), 8);
    // Windows of 8 and ubatches of 6: thirteen cells, of which the token after the first 34 sees seven before itself.
    for (len, n_reused) in [(38, 38), (34, 34), (33, 0), (3, 0)] {
        let mut session = engine.session();
        answer(&mut session, &request(prompt.iter().copied(), 1));
        let found = answer(&mut session, &branch(len));
        assert_eq!(found.stats.n_reused, n_reused, "branch after {len}");
        drop(session);
        assert_eq!(found.ids, answer(&mut engine.session(), &branch(len)).ids);
    }
}

#[test]
fn an_answer_ends_at_its_limits() {
    let mut engine = engine(12);
    let mut session = engine.session();
    let few = answer(&mut session, &request([40, 41], 3));
    assert_eq!((few.reason, few.ids.len()), (FinishReason::MaxTokens, 3));
    let full = answer(&mut session, &request([40, 41], 99));
    // Twelve cells: two of the prompt, ten of the answer, and one token more that needs no cell.
    assert_eq!((full.reason, full.ids.len()), (FinishReason::ContextFull, 11));
    assert_eq!(full.ids[..3], few.ids);
}

#[test]
fn a_stop_string_is_cut_out_wherever_tokens_end() {
    let mut engine = engine(64);
    let whole = answer(&mut engine.session(), &request([40, 41], 12));
    let text: Vec<char> = whole.text.chars().collect();
    for (start, len) in [(0, 1), (1, 3), (4, 2), (2, 7)] {
        let stop: String = text.iter().skip(start).take(len).collect();
        let stopping = Request { stop: vec![stop.clone()], ..request([40, 41], 12) };
        let found = answer(&mut engine.session(), &stopping);
        assert_eq!(found.reason, FinishReason::Stop);
        assert_eq!(found.text, whole.text[..whole.text.find(&stop).unwrap()]);
    }
}

#[test]
fn a_cancelled_session_is_usable_again() {
    let mut engine = engine(64);
    let mut session = engine.session();
    let cancel = session.cancel();
    let mut events = session.generate(&request([5, 9, 40], 30)).unwrap();
    assert!(matches!(events.next(), Some(Ok(Event::Token { .. }))));
    cancel.cancel();
    let last = events.next();
    assert!(matches!(last, Some(Ok(Event::Done { reason: FinishReason::Cancelled, .. }))));
    assert!(events.next().is_none());
    let after = answer(&mut session, &request([5, 9, 40], 4));
    drop(session);
    assert_eq!(after.ids, answer(&mut engine.session(), &request([5, 9, 40], 4)).ids);
}

#[test]
fn requests_that_cannot_be_met_are_refused_before_any_work() {
    let mut engine = engine(8);
    let mut session = engine.session();
    let long = refusal(&mut session, &request(5..13, 1));
    assert_eq!(
        long.to_string(),
        "the prompt has 8 tokens; with a context of 8 it can have at most 7; shorten it or ask \
         for a larger context"
    );
    assert!(matches!(refusal(&mut session, &request([], 1)), EngineError::EmptyPrompt));
    let unknown = refusal(&mut session, &request([100_000], 1));
    assert!(matches!(unknown, EngineError::UnknownToken { id: 100_000, .. }));
    let none = refusal(&mut session, &request([5], 0));
    assert!(matches!(none, EngineError::OptionOutOfRange { .. }));
}

#[test]
fn a_conversation_is_put_into_the_models_format() {
    let mut engine = engine(512);
    let chat = Prompt::Chat(vec![Message::new("user", "<|im_end|> is only text")]);
    let request = Request { max_tokens: Some(1), ..chat.into() };
    let found = answer(&mut engine.session(), &request);
    assert!(found.stats.n_prompt > 10);
}

#[test]
fn a_context_that_does_not_fit_says_what_would() {
    let options = EngineOptions { n_ctx: Some(1 << 30), ..EngineOptions::default() };
    match load(options).err().expect("2^30 tokens do not fit") {
        EngineError::ContextTooLarge { n_ctx, needed, free, n_ctx_fitting, .. } => {
            assert_eq!(n_ctx, 1 << 30);
            assert!(needed > free && n_ctx_fitting > 1000 && n_ctx_fitting < 1 << 30);
        }
        error => panic!("{error}"),
    }
    let small = load(EngineOptions { n_ctx: Some(1), ..EngineOptions::default() });
    assert_eq!(
        small.err().unwrap().to_string(),
        "the context is 1; it must be from 2 to 2^30 tokens"
    );
}
