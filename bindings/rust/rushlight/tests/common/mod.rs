//! What the tests share: files of `tests/e2e/c_api/binding_data.py`, and checks of failures.
#![allow(dead_code)] // each file of tests uses some of it

use std::fs;
use std::path::{Path, PathBuf};

use rushlight::{Code, Element, Error, Tensor};

/// A file that `tests/e2e/c_api/test_rust.py` has made.
pub fn data(name: impl AsRef<Path>) -> PathBuf {
    let folder = std::env::var_os("RUSHLIGHT_TEST_DATA")
        .expect("RUSHLIGHT_TEST_DATA is not set: run tests/e2e/c_api/test_rust.py");
    Path::new(&folder).join(name)
}

/// A file of `tests/golden`.
pub fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/golden").join(name)
}

pub fn bytes(name: &str) -> Vec<u8> {
    fs::read(data(name)).expect(name)
}

/// The numbers of a file.
pub fn numbers<T: Element>(name: &str) -> Vec<T> {
    let bytes = bytes(name);
    let count = (bytes.len() / T::DTYPE.bytes()) as i32;
    let mut tensor = Tensor::zeros(T::DTYPE, &[count]).expect(name);
    tensor.as_bytes_mut().copy_from_slice(&bytes);
    tensor.as_slice().expect(name).to_vec()
}

/// Checks that a call failed with a code and a text.
#[track_caller]
pub fn fails<T>(result: Result<T, Error>, code: Code, part: &str) -> Error {
    match result {
        Ok(_) => panic!("nothing failed; wanted: {part}"),
        Err(error) => {
            assert_eq!(error.code(), code, "{error}");
            assert!(error.to_string().contains(part), "{error}");
            error
        }
    }
}
