//! Inputs and outputs of methods.

use std::borrow::Cow;
use std::marker::PhantomData;

use rushlight_sys as sys;

use crate::dtype::DType;
use crate::error::{self, Error, Result};
use crate::tensor::{Tensor, TensorView};

/// An input or an output.
#[derive(Clone, Debug)]
#[non_exhaustive]
#[allow(clippy::large_enum_variant)] // nearly all are tensors
pub enum Value<'a> {
    /// `None`.
    None,
    /// A tensor.
    Tensor(TensorView<'a>),
    /// An int.
    Int(i64),
    /// A float.
    Double(f64),
    /// A bool.
    Bool(bool),
    /// A text.
    Text(Cow<'a, str>),
    /// A list: as an output alone, and without its items.
    List,
}

impl<'a> From<TensorView<'a>> for Value<'a> {
    fn from(tensor: TensorView<'a>) -> Self {
        Value::Tensor(tensor)
    }
}

impl<'a> From<&'a Tensor> for Value<'a> {
    fn from(tensor: &'a Tensor) -> Self {
        Value::Tensor(tensor.view())
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Value::Int(number)
    }
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Value::Double(number)
    }
}

impl From<bool> for Value<'_> {
    fn from(flag: bool) -> Self {
        Value::Bool(flag)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Value::Text(Cow::Borrowed(text))
    }
}

impl<'a> Value<'a> {
    /// As the library takes it, for as long as this value stays where it is.
    pub(crate) fn as_sys(&self) -> sys::rl_value_v1 {
        let mut value = sys::rl_value_v1::default();
        match self {
            Value::None => value.kind = sys::RL_NONE,
            Value::Tensor(tensor) => return tensor.value(),
            Value::Int(number) => (value.kind, value.i) = (sys::RL_INT, *number),
            Value::Double(number) => (value.kind, value.d) = (sys::RL_DOUBLE, *number),
            Value::Bool(flag) => (value.kind, value.i) = (sys::RL_BOOL, i64::from(*flag)),
            Value::Text(text) => (value.kind, value.text) = (sys::RL_STRING, error::lend(text)),
            Value::List => value.kind = sys::RL_LIST,
        }
        value
    }

    /// An output.
    ///
    /// # Safety
    /// Its memory is lent for as long as 'a.
    unsafe fn of(value: &sys::rl_value_v1) -> Result<Value<'a>> {
        Ok(match value.kind {
            sys::RL_NONE => Value::None,
            // SAFETY: the caller's promise.
            sys::RL_TENSOR => Value::Tensor(unsafe { TensorView::of_value(value) }?),
            sys::RL_INT => Value::Int(value.i),
            sys::RL_DOUBLE => Value::Double(value.d),
            sys::RL_BOOL => Value::Bool(value.i != 0),
            // SAFETY: the caller's promise.
            sys::RL_STRING => {
                Value::Text(String::from_utf8_lossy(unsafe { error::bytes_of(value.text) }))
            }
            _ => Value::List,
        })
    }
}

/// What a run has computed. Its memory is the module's, which lends it until this is dropped.
pub struct Outputs<'a> {
    values: Vec<sys::rl_value_v1>,
    memory: PhantomData<&'a [u8]>,
}

impl<'a> Outputs<'a> {
    /// # Safety
    /// The memory of the values is lent for as long as 'a.
    pub(crate) unsafe fn new(values: Vec<sys::rl_value_v1>) -> Self {
        Outputs { values, memory: PhantomData }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether the method has no outputs.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// An output; an error for an index that there is not.
    pub fn get(&self, index: usize) -> Result<Value<'a>> {
        match self.values.get(index) {
            // SAFETY: what new() was promised.
            Some(value) => unsafe { Value::of(value) },
            None => {
                let text = format!("there is no output {index}: the method has {}", self.len());
                Err(Error::argument(text))
            }
        }
    }

    /// An output that is a tensor; an error if it is something else.
    pub fn tensor(&self, index: usize) -> Result<TensorView<'a>> {
        match self.get(index)? {
            Value::Tensor(tensor) => Ok(tensor),
            other => Err(Error::argument(format!("output {index} is no tensor but {other:?}"))),
        }
    }
}

/// What an input or an output is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// `None`.
    None,
    /// A tensor.
    Tensor,
    /// A text.
    Text,
    /// A float.
    Double,
    /// An int.
    Int,
    /// A bool.
    Bool,
    /// A list.
    List,
}

/// An input or an output of a method, as the program describes it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ValueInfo {
    /// Of an input, such as "x" or "batch['ids']"; empty if the program has none.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// Of a tensor.
    pub dtype: Option<DType>,
    /// The least sizes of a tensor.
    pub min_sizes: Vec<i32>,
    /// The greatest sizes of a tensor; `i32::MAX`: no bound.
    pub max_sizes: Vec<i32>,
    /// Sizes of one number, from 1 on, are equal in a call; 0: it is not tied to others.
    pub symbols: Vec<u32>,
    /// The dimensions from the outermost to the innermost in memory.
    pub dim_order: Vec<u8>,
    /// Bytes of a tensor of the greatest sizes; `None`: no bound.
    pub bytes: Option<u64>,
    /// Of a scalar: whether it must be what it was at export.
    pub is_fixed: bool,
}

impl ValueInfo {
    /// # Safety
    /// The name is lent until this returns.
    pub(crate) unsafe fn of(info: &sys::rl_value_info) -> Result<ValueInfo> {
        let rank = (info.rank as usize).min(sys::RL_MAX_RANK);
        let kind = match info.kind {
            sys::RL_NONE => Kind::None,
            sys::RL_TENSOR => Kind::Tensor,
            sys::RL_STRING => Kind::Text,
            sys::RL_DOUBLE => Kind::Double,
            sys::RL_INT => Kind::Int,
            sys::RL_BOOL => Kind::Bool,
            _ => Kind::List,
        };
        Ok(ValueInfo {
            // SAFETY: the caller's promise.
            name: unsafe { error::copy_text(info.name) },
            kind,
            dtype: if kind == Kind::Tensor { Some(DType::of(info.dtype)?) } else { None },
            min_sizes: info.min_sizes[..rank].to_vec(),
            max_sizes: info.max_sizes[..rank].to_vec(),
            symbols: info.symbols[..rank].to_vec(),
            dim_order: info.dim_order[..rank].to_vec(),
            bytes: Some(info.nbytes).filter(|bytes| *bytes != u64::MAX),
            is_fixed: info.is_fixed != 0,
        })
    }
}

/// What a method is, and the memory that it takes, or would take.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MethodInfo {
    /// Its name.
    pub name: String,
    /// Whether it is loaded.
    pub is_loaded: bool,
    /// The number of inputs.
    pub inputs: usize,
    /// The number of outputs.
    pub outputs: usize,
    /// Bytes of its arenas.
    pub arenas: u64,
    /// Bytes of the arenas that all methods share.
    pub shared_arenas: u64,
    /// Bytes of its structures, without what backends allocate.
    pub structures: u64,
    /// Bytes of outputs that the program does not plan.
    pub output_bytes: u64,
    /// Bytes of scratch.
    pub scratch: u64,
    /// Instructions.
    pub instructions: u64,
}

impl MethodInfo {
    /// # Safety
    /// The name is lent until this returns.
    pub(crate) unsafe fn of(info: &sys::rl_method_info) -> MethodInfo {
        MethodInfo {
            // SAFETY: the caller's promise.
            name: unsafe { error::copy_text(info.name) },
            is_loaded: info.is_loaded != 0,
            inputs: info.n_inputs as usize,
            outputs: info.n_outputs as usize,
            arenas: info.arenas,
            shared_arenas: info.shared_arenas,
            structures: info.structures,
            output_bytes: info.outputs,
            scratch: info.scratch,
            instructions: info.instructions,
        }
    }
}

/// A buffer that a method writes, which keeps its content from one run to the next.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StateInfo {
    /// Its name; empty if the program has none.
    pub name: String,
    /// The first loaded method that has it.
    pub method: String,
    /// The type of its elements.
    pub dtype: DType,
    /// Its sizes.
    pub sizes: Vec<i32>,
}
