//! Types of elements.

use std::fmt;

use rushlight_sys as sys;

use crate::error::{Error, Result};

/// The type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DType {
    /// `u8`
    Uint8,
    /// `i8`
    Int8,
    /// `i16`
    Int16,
    /// `i32`
    Int32,
    /// `i64`
    Int64,
    /// The 16 bits of IEEE's binary16.
    Float16,
    /// `f32`
    Float32,
    /// `f64`
    Float64,
    /// Two `f32`.
    Complex64,
    /// Two `f64`.
    Complex128,
    /// A byte, 0 or 1.
    Bool,
    /// The upper 16 bits of an `f32`.
    Bfloat16,
    /// `u16`
    Uint16,
    /// `u32`
    Uint32,
    /// `u64`
    Uint64,
}

// The number, the name and the bytes of an element.
const DTYPES: [(DType, i32, &str, usize); 15] = [
    (DType::Uint8, sys::RL_UINT8, "uint8", 1),
    (DType::Int8, sys::RL_INT8, "int8", 1),
    (DType::Int16, sys::RL_INT16, "int16", 2),
    (DType::Int32, sys::RL_INT32, "int32", 4),
    (DType::Int64, sys::RL_INT64, "int64", 8),
    (DType::Float16, sys::RL_FLOAT16, "float16", 2),
    (DType::Float32, sys::RL_FLOAT32, "float32", 4),
    (DType::Float64, sys::RL_FLOAT64, "float64", 8),
    (DType::Complex64, sys::RL_COMPLEX64, "complex64", 8),
    (DType::Complex128, sys::RL_COMPLEX128, "complex128", 16),
    (DType::Bool, sys::RL_BOOLEAN, "bool", 1),
    (DType::Bfloat16, sys::RL_BFLOAT16, "bfloat16", 2),
    (DType::Uint16, sys::RL_UINT16, "uint16", 2),
    (DType::Uint32, sys::RL_UINT32, "uint32", 4),
    (DType::Uint64, sys::RL_UINT64, "uint64", 8),
];

impl DType {
    fn row(self) -> &'static (DType, i32, &'static str, usize) {
        // In the order of the enum, which a test holds.
        &DTYPES[self as usize]
    }

    pub(crate) fn of(number: i32) -> Result<DType> {
        let row = DTYPES.iter().find(|row| row.1 == number);
        row.map(|row| row.0).ok_or_else(|| {
            Error::argument(format!("no dtype of this crate has the number {number}"))
        })
    }

    pub(crate) fn number(self) -> i32 {
        self.row().1
    }

    /// The bytes of an element.
    pub fn bytes(self) -> usize {
        self.row().3
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.row().2)
    }
}

/// Types of Rust that are elements of tensors.
///
/// # Safety
/// `DTYPE` has values of this size and alignment, and all bits are a value.
pub unsafe trait Element: Copy + Default + Send + Sync + 'static {
    /// The dtype.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($type:ty => $dtype:ident),*) => {$(
        // SAFETY: a number of the dtype's size.
        unsafe impl Element for $type {
            const DTYPE: DType = DType::$dtype;
        }
    )*};
}

elements!(
    u8 => Uint8, i8 => Int8, i16 => Int16, i32 => Int32, i64 => Int64, f32 => Float32,
    f64 => Float64, u16 => Uint16, u32 => Uint32, u64 => Uint64
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_order_of_the_enum() {
        for (i, row) in DTYPES.iter().enumerate() {
            assert_eq!(row.0 as usize, i);
            assert_eq!(DType::of(row.1), Ok(row.0));
        }
        assert!(DType::of(8).is_err());
    }
}
