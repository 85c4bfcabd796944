//! Answers a question: `cargo run --example chat -- llm.pte "What is a rushlight?"`.

use std::io::{stdout, Write};

use rushlight::{LanguageModel, Message};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("give the path of a language model (.pte)")?;
    let question = arguments.next().unwrap_or_else(|| "What is a rushlight?".into());
    let model = LanguageModel::open(path)?;
    let mut options = model.default_options()?;
    options.max_tokens = 64;
    let prompt = model.encode_messages(&[Message::user(&question)])?;
    let mut session = model.session()?;
    let mut texts = session.texts(&prompt, &options)?;
    for text in &mut texts {
        print!("{}", text?);
        stdout().flush()?;
    }
    println!();
    if let Some(statistics) = texts.statistics() {
        println!("{} tokens", statistics.output_tokens);
    }
    Ok(())
}
