//! Finds librushlight: in `RUSHLIGHT_LIB_DIR`, or by pkg-config.
//!
//! The program that is built finds it at run time as it finds any shared library; the folder is
//! handed to crates that depend on this one as `DEP_RUSHLIGHT_LIB_DIR`, for a run path.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{exit, Command};

const WHAT_TO_DO: &str = "set RUSHLIGHT_LIB_DIR to the folder with librushlight.so, or \
                          PKG_CONFIG_PATH to that with rushlight-c.pc";

fn fail(reason: &str) -> ! {
    eprintln!("rushlight-sys: {reason}: {WHAT_TO_DO}");
    exit(1);
}

/// The folders that pkg-config names; none for a library in the system's own.
fn ask_pkg_config() -> Vec<PathBuf> {
    let program = env::var("PKG_CONFIG").unwrap_or_else(|_| "pkg-config".into());
    let output = match Command::new(&program).args(["--libs-only-L", "rushlight-c"]).output() {
        Ok(output) => output,
        Err(error) => fail(&format!("{program} cannot be run ({error})")),
    };
    if !output.status.success() {
        fail(String::from_utf8_lossy(&output.stderr).trim());
    }
    let flags = String::from_utf8_lossy(&output.stdout).into_owned();
    flags.split_whitespace().filter_map(|flag| flag.strip_prefix("-L")).map(PathBuf::from).collect()
}

fn has_library(folder: &Path) -> bool {
    ["librushlight.so", "librushlight.dylib", "rushlight.lib", "librushlight.a"]
        .iter()
        .any(|name| folder.join(name).exists())
}

fn main() {
    for name in ["RUSHLIGHT_LIB_DIR", "PKG_CONFIG", "PKG_CONFIG_PATH"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    let folders = match env::var_os("RUSHLIGHT_LIB_DIR").filter(|folder| !folder.is_empty()) {
        Some(folder) => {
            let folder = PathBuf::from(folder);
            if !has_library(&folder) {
                fail(&format!("RUSHLIGHT_LIB_DIR, {}, has no librushlight", folder.display()));
            }
            vec![folder]
        }
        None => ask_pkg_config(),
    };
    for folder in &folders {
        println!("cargo:rustc-link-search=native={}", folder.display());
    }
    if let Some(folder) = folders.first() {
        println!("cargo:lib_dir={}", folder.display());
    }
    println!("cargo:rustc-link-lib=dylib=rushlight");
}
