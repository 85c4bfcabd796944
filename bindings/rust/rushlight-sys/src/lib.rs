//! The C interface of Rushlight, `rushlight.h`, as it is: constants, structs and functions by their
//! names there, whose comments are the documentation. The crate `rushlight` is the safe interface.
//!
//! Structs have `Default`: their size is set, and everything else is 0. Tests hold this crate to
//! the description of the ABI, and the library to this crate.

#![allow(non_camel_case_types, missing_docs)]

/// `Default` of structs that begin with their size: all other fields are 0.
macro_rules! with_size {
    ($($name:ident),* $(,)?) => {$(
        impl Default for $name {
            fn default() -> Self {
                // SAFETY: all fields are numbers, pointers or optional functions, which may be 0.
                let mut made: Self = unsafe { std::mem::zeroed() };
                made.size = std::mem::size_of::<Self>() as u32;
                made
            }
        }
    )*};
}

mod abi;
mod functions;
mod types;

pub use abi::*;
pub use functions::*;
pub use types::*;

impl Default for rl_error {
    fn default() -> Self {
        rl_error {
            size: std::mem::size_of::<rl_error>() as u32,
            code: RL_OK,
            instruction: RL_NO_INDEX,
            delegate: RL_NO_INDEX,
            text: [0; RL_ERROR_TEXT],
        }
    }
}
