//! Rushlight for Rust: PyTorch programs (`.pte`) and language models, without Python.
//!
//! ```no_run
//! use rushlight::{Module, TensorView};
//!
//! # fn main() -> rushlight::Result<()> {
//! let mut module = Module::open("model.pte")?;
//! let x = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0];
//! let outputs = module.run("forward", &[TensorView::new(&x, &[2, 3])?.into()])?;
//! let y: &[f32] = outputs.tensor(0)?.as_slice()?;
//! println!("{y:?}");
//! # Ok(())
//! # }
//! ```
//!
//! ```no_run
//! use rushlight::{LanguageModel, Message};
//!
//! # fn main() -> rushlight::Result<()> {
//! let model = LanguageModel::open("llm.pte")?;
//! let mut session = model.session()?;
//! let mut options = model.default_options()?;
//! options.max_tokens = 100;
//! let prompt = model.encode_messages(&[Message::user("What is a rushlight?")])?;
//! for text in session.texts(&prompt, &options)? {
//!     print!("{}", text?);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! Everything is a call of `rushlight.h`; [`rushlight_sys`] has what is not here: allocators, the
//! log, backends and kernels that are linked. What fails is an [`Error`] with the code and the text
//! of the C interface.

mod callback;
mod cancel;
mod chat;
mod dtype;
mod error;
mod generate;
mod llm;
mod llm_options;
mod memory;
mod module;
mod options;
mod session;
mod tensor;
mod value;

pub use rushlight_sys;

pub use cancel::Canceller;
pub use chat::Message;
pub use dtype::{DType, Element};
pub use error::{Code, Error, Result};
pub use generate::{Finish, GenerateOptions, Piece, Statistics};
pub use llm::{Adapter, Grammar, LanguageModel, LlmInfo};
pub use llm_options::{Cache, LlmOptions};
pub use module::Module;
pub use options::{ModuleOptions, TraceOptions, TraceValues};
pub use session::{Session, Texts};
pub use tensor::{MemoryMut, Tensor, TensorView};
pub use value::{Kind, MethodInfo, Outputs, StateInfo, Value, ValueInfo};

/// The release of the library, such as "0.1.0".
pub fn version() -> &'static str {
    // SAFETY: a constant of the library.
    error::forever(unsafe { rushlight_sys::rl_version() })
}

/// An error unless the library is one that this crate was made for.
pub fn check_version() -> Result<()> {
    // SAFETY: takes a number alone.
    error::check(|error| unsafe {
        rushlight_sys::rl_check_abi(rushlight_sys::RL_ABI_VERSION, error)
    })
}
