//! Language models write what they write in Python.

mod common;

use std::ops::ControlFlow;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use common::{bytes, data, fails, golden, numbers};
use rushlight::{
    Code, Finish, GenerateOptions, LanguageModel, LlmOptions, Message, Piece, Session, TraceOptions,
};

const GO_ON: ControlFlow<()> = ControlFlow::Continue(());

fn open() -> LanguageModel {
    let options = LlmOptions { threads: 1, ..Default::default() };
    LanguageModel::open_with(golden("llm/v1.pte"), &options).unwrap()
}

fn greedy(model: &LanguageModel) -> GenerateOptions<'static> {
    let mut options = model.default_options().unwrap();
    (options.temperature, options.max_tokens, options.ignores_end) = (0.0, 12, true);
    options
}

fn sampled(model: &LanguageModel) -> GenerateOptions<'static> {
    let mut options = greedy(model);
    (options.temperature, options.top_k, options.top_p, options.seed) = (0.9, 20, 0.9, 5);
    options
}

fn text(name: &str) -> String {
    String::from_utf8(bytes(name)).unwrap()
}

#[derive(Default)]
struct Reader {
    tokens: Vec<i32>,
    text: String,
    logprobs: Vec<f32>,
    finish: Option<Finish>,
}

impl Reader {
    fn read(&mut self, piece: &Piece<'_>) -> ControlFlow<()> {
        self.tokens.extend(piece.tokens);
        self.text += piece.text;
        self.logprobs.extend(piece.logprobs);
        self.finish = piece.finish;
        GO_ON
    }
}

#[test]
fn texts_are_those_of_python() {
    let model = open();
    let prompt = model.encode("the lamp was").unwrap();
    assert_eq!(prompt, numbers::<i32>("prompt.tokens"));
    for (name, mut options) in [("greedy", greedy(&model)), ("sampled", sampled(&model))] {
        options.logprobs = true;
        let wanted: Vec<i32> = numbers(&format!("{name}.tokens"));
        let mut reader = Reader::default();
        let statistics = model.generate(&prompt, &options, |piece| reader.read(piece)).unwrap();
        assert_eq!((&reader.tokens, reader.text), (&wanted, text(&format!("{name}.txt"))));
        assert_eq!(
            (reader.finish, statistics.finish),
            (Some(Finish::Length), Some(Finish::Length))
        );
        assert_eq!((statistics.output_tokens, reader.logprobs.len()), (12, 12));
        assert!(reader.logprobs.iter().all(|p| *p <= 0.0));
        let mut session = model.session().unwrap();
        let mut reader = Reader::default();
        session.generate(&prompt, &options, |piece| reader.read(piece)).unwrap();
        assert_eq!(reader.tokens, wanted);
        assert_eq!(session.tokens().unwrap(), [&prompt[..], &wanted[..]].concat());
    }
}

#[test]
fn iterators_of_texts() {
    let model = open();
    let prompt = model.encode("the lamp was").unwrap();
    let options = greedy(&model);
    let mut session = model.session().unwrap();
    let mut texts = session.texts(&prompt, &options).unwrap();
    let all: String = texts.by_ref().map(|text| text.unwrap()).collect();
    assert_eq!(all, text("greedy.txt"));
    assert_eq!(texts.statistics().unwrap().output_tokens, 12);
    assert!(texts.next().is_none());
    drop(texts);
    assert_eq!(session.tokens().unwrap().len(), prompt.len() + 12);
    // Dropping it ends a text that has no end.
    let mut endless = greedy(&model);
    (endless.max_tokens, endless.shifts) = (1 << 40, true);
    let mut other = model.session().unwrap();
    let mut texts = other.texts(&prompt, &endless).unwrap();
    assert!(texts.next().unwrap().is_ok());
    drop(texts);
    assert!(other.tokens().unwrap().len() > prompt.len());
    drop(other.texts(&prompt, &endless).unwrap());
    // What fails is the last item.
    let mut wrong = greedy(&model);
    wrong.top_p = 9.0;
    let mut texts = session.texts(&prompt, &wrong).unwrap();
    fails(texts.next().unwrap(), Code::InvalidArgument, "top_p");
    assert!(texts.next().is_none());
    drop(texts);
    // One that is forgotten keeps the session, which does no harm.
    let mut texts = session.texts(&prompt, &endless).unwrap();
    assert!(texts.next().unwrap().is_ok());
    std::mem::forget(texts);
    fails(session.tokens(), Code::InvalidState, "in use by another call");
    fails(session.close(), Code::InvalidState, "in use by another call");
}

#[test]
fn tokenizer_and_chat() {
    let model = open();
    for i in 0..5 {
        let tokens = model.encode(&text(&format!("text_{i}.txt"))).unwrap();
        assert_eq!(tokens, numbers::<i32>(&format!("text_{i}.tokens")));
        assert_eq!(model.decode(&tokens).unwrap(), text(&format!("text_{i}.decoded")));
    }
    let special = model.encode_with("<|user|>", false, true).unwrap();
    assert_eq!(special.len(), 1);
    assert_eq!(model.decode(&special).unwrap(), "");
    assert_eq!(model.decode_with(&special, false).unwrap(), "<|user|>");
    assert!(model.encode_with("<|user|>", false, false).unwrap().len() > 1);
    let chat = model.encode_messages(&[Message::user("say \"hi\"\n\\ é 😀")]).unwrap();
    assert_eq!(chat, numbers::<i32>("chat.tokens"));
    fails(model.encode_chat("{"), Code::InvalidArgument, "");
    fails(model.encode_chat("[]"), Code::InvalidArgument, "");
    assert_eq!(model.decode(&[-1, i32::MAX]).unwrap(), ""); // there are no such tokens
    let info = model.describe().unwrap();
    assert!(
        info.has_tokenizer && info.has_chat_template && info.vocabulary > 1 && info.context > 1
    );
}

#[test]
fn sessions() {
    let model = open();
    let prompt = model.encode("the lamp was").unwrap();
    let options = greedy(&model);
    let mut session = model.session().unwrap();
    session.generate(&prompt, &options, |_| GO_ON).unwrap();
    let file = data("rust.session");
    session.save(&file).unwrap();
    let mut fork = session.fork().unwrap();
    let mut again = model.restore(&file, None).unwrap();
    assert_eq!(session.tokens().unwrap(), again.tokens().unwrap());
    fork.rewind(12).unwrap();
    assert_eq!(fork.tokens().unwrap(), prompt);
    fails(session.rewind(10_000), Code::InvalidArgument, "");
    again.set_tokens(&prompt).unwrap();
    let mut reader = Reader::default();
    again.generate(&[], &options, |piece| reader.read(piece)).unwrap();
    assert_eq!(reader.tokens, numbers::<i32>("greedy.tokens"));
    let mut damaged = std::fs::read(&file).unwrap();
    damaged.truncate(damaged.len() / 2);
    std::fs::write(&file, damaged).unwrap();
    fails(model.restore(&file, None), Code::InvalidExternalData, "");
    fails(model.restore("no/file", None), Code::AccessFailed, "");
    fails(session.save("no/folder/session"), Code::AccessFailed, "");
    // The model lives until its sessions are closed.
    model.close().unwrap();
    session.rewind(12).unwrap();
    let mut reader = Reader::default();
    session.generate(&[], &options, |piece| reader.read(piece)).unwrap();
    assert_eq!(reader.tokens, numbers::<i32>("greedy.tokens"));
}

#[test]
fn listeners_that_stop_and_that_panic() {
    let model = open();
    let prompt = model.encode("a").unwrap();
    let options = greedy(&model);
    let mut told = 0;
    let statistics = model
        .generate(&prompt, &options, |piece| {
            told += piece.tokens.len();
            if told < 2 {
                GO_ON
            } else {
                ControlFlow::Break(())
            }
        })
        .unwrap();
    assert_eq!((told, statistics.finish), (2, Some(Finish::Cancelled)));
    let mut session = model.session().unwrap();
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        session.generate(&prompt, &options, |_| panic!("the listener's own"))
    }));
    assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&"the listener's own"));
    assert!(session.generate(&prompt, &options, |_| GO_ON).is_ok());
    // The tokenizer may be used meanwhile.
    let mut joined = String::new();
    model
        .generate(&prompt, &options, |piece| {
            joined += &model.decode(piece.tokens).unwrap();
            GO_ON
        })
        .unwrap();
    assert!(!joined.is_empty());
}

#[test]
fn sessions_are_cancelled_by_another_thread() {
    let model = open();
    let mut options = greedy(&model);
    (options.max_tokens, options.shifts) = (1 << 40, true);
    let mut session = model.session().unwrap();
    let canceller = session.canceller();
    let is_over = AtomicBool::new(false);
    let statistics = thread::scope(|scope| {
        let is_over = &is_over;
        scope.spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                canceller.cancel().unwrap();
                thread::yield_now();
            }
        });
        let statistics = session.generate(&[5, 6, 7], &options, |_| GO_ON);
        is_over.store(true, Ordering::Relaxed);
        statistics
    });
    assert_eq!(statistics.unwrap().finish, Some(Finish::Cancelled));
}

#[test]
fn several_texts_stops_and_threads() {
    let model = open();
    let prompt = model.encode("the lamp was").unwrap();
    let mut options = sampled(&model);
    (options.n, options.max_tokens) = (3, 6);
    let mut counts = [0; 3];
    let count = |piece: &Piece<'_>| {
        counts[piece.choice as usize] += piece.tokens.len();
        GO_ON
    };
    model.generate(&prompt, &options, count).unwrap();
    assert_eq!(counts, [6; 3]);
    let whole = text("greedy.txt");
    let stop: String = whole.chars().skip(3).take(2).collect();
    let mut options = greedy(&model);
    options.stop = vec![stop.clone()];
    let mut reader = Reader::default();
    model.generate(&prompt, &options, |piece| reader.read(piece)).unwrap();
    assert_eq!(
        (reader.text.as_str(), reader.finish),
        (&whole[..whole.find(&stop).unwrap()], Some(Finish::Stop))
    );
    let mut options = greedy(&model);
    options.stop_tokens = vec![numbers::<i32>("greedy.tokens")[4]];
    let statistics = model.generate(&prompt, &options, |_| GO_ON).unwrap();
    assert_eq!(statistics.finish, Some(Finish::Stop));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut reader = Reader::default();
                let options = greedy(&model);
                model.generate(&prompt, &options, |piece| reader.read(piece)).unwrap();
                assert_eq!(reader.tokens, numbers::<i32>("greedy.tokens"));
            });
        }
    });
    options.top_p = 9.0;
    fails(model.generate(&prompt, &options, |_| GO_ON), Code::InvalidArgument, "top_p");
    fails(model.generate(&[-5], &greedy(&model), |_| GO_ON), Code::InvalidArgument, "");
}

#[test]
fn grammars() {
    let model = open();
    let grammar = model.grammar_from_json_schema(r#"{"enum": ["yes", "no"]}"#).unwrap();
    let mut options = greedy(&model);
    (options.grammar, options.max_tokens, options.ignores_end) = (Some(&grammar), 20, false);
    let prompt = model.encode("the lamp was").unwrap();
    let mut reader = Reader::default();
    model.generate(&prompt, &options, |piece| reader.read(piece)).unwrap();
    assert!(["\"yes\"", "\"no\""].contains(&reader.text.as_str()), "{}", reader.text);
    let grammar = model.grammar_from_regex("[ab]{3}").unwrap();
    options.grammar = Some(&grammar);
    let mut session: Session = model.session().unwrap();
    let all: String = session.texts(&prompt, &options).unwrap().map(|text| text.unwrap()).collect();
    assert!(all.len() == 3 && all.chars().all(|c| "ab".contains(c)), "{all}");
    fails(model.grammar_from_regex("("), Code::InvalidArgument, "");
    fails(model.adapter("no/file"), Code::AccessFailed, "");
}

#[test]
fn traces() {
    let model = open();
    fails(model.trace_write(&mut Vec::new()), Code::InvalidState, "");
    model.trace_start(&TraceOptions::default()).unwrap();
    model.generate(&[5, 6, 7], &greedy(&model), |_| GO_ON).unwrap();
    model.trace_stop().unwrap();
    let path = data("llm_rust.etdp");
    model.trace_save(&path).unwrap();
    let mut written = Vec::new();
    model.trace_write(&mut written).unwrap();
    assert_eq!(std::fs::read(path).unwrap(), written);
}

#[test]
fn embeddings() {
    let model = open();
    let vectors = model.embed(&["a lamp", "the light"]).unwrap();
    assert_eq!(vectors.concat(), numbers::<f32>("embedded.bin"));
    assert!(model.embed(&[]).unwrap().is_empty());
}

#[test]
fn models_in_memory_and_files_that_are_none() {
    let file = std::fs::read(golden("llm/v1.pte")).unwrap();
    let options = LlmOptions { threads: 1, ..Default::default() };
    let model = LanguageModel::from_bytes(file.clone(), &options).unwrap();
    let prompt = model.encode("the lamp was").unwrap();
    let mut session = model.session().unwrap();
    let generate = greedy(&model);
    drop(model); // the session keeps the memory
    let all: String =
        session.texts(&prompt, &generate).unwrap().map(|text| text.unwrap()).collect();
    assert_eq!(all, text("greedy.txt"));
    fails(LanguageModel::open(golden("add.pte")), Code::NotSupported, "");
    fails(LanguageModel::open("no/file"), Code::AccessFailed, "");
    assert!(LanguageModel::from_bytes(file[..file.len() / 2].to_vec(), &options).is_err());
    let wrong = LlmOptions { chat_template: Some("{% if".into()), ..Default::default() };
    let result = LanguageModel::open_with(golden("llm/v1.pte"), &wrong);
    assert!(result.and_then(|model| model.encode_messages(&[Message::user("hi")])).is_err());
}
