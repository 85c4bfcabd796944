//! This crate is what `cpp/c_api/abi` describes: its constants, layouts and types of functions. The
//! description of the newest version is read, and so are the sources of this crate, whose types are
//! written as C has them; sizes and offsets are the compiler's.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs;
use std::mem::{offset_of, size_of};
use std::path::PathBuf;

use rushlight_sys::*;

const SOURCES: [&str; 3] = [
    include_str!("../src/abi.rs"),
    include_str!("../src/types.rs"),
    include_str!("../src/functions.rs"),
];

/// The lines of a struct: its size, and the offset of each field.
macro_rules! layouts {
    ($($name:ident { $($field:ident),* })*) => {{
        let mut lines = Vec::new();
        $(
            lines.push(format!("struct {}: {} bytes", stringify!($name), size_of::<$name>()));
            $(lines.push(format!("{} {}", offset_of!($name, $field), stringify!($field)));)*
        )*
        lines
    }};
}

#[rustfmt::skip] // a struct, a line
fn layouts() -> Vec<String> {
    layouts! {
        rl_text_v1 { data, size }
        rl_bytes_v1 { data, size }
        rl_value_v1 {
            size, kind, i, d, text, data, sizes, strides, dim_order, rank, dtype, nbytes,
            capacity, n_items
        }
        rl_spec_v1 { key, value }
        rl_option_v1 { size, kind, i, text }
        rl_host_v1 {
            version, size, explain, fail_at_number, fail_at_text, allocate, event, now_ns,
            named_data, option, release_payload, value, resize, event_with, wants_value,
            tell_value
        }
        rl_init_v1 { size, n_specs, host, context, method, payload, specs }
        rl_call_v1 { size, is_traced, host, context, n_args, n_inputs }
        rl_backend_v1 { version, size, id, self_, is_available, init, execute, destroy }
        rl_kernel_host_v1 {
            version, size, explain, value, item, resize, scratch, scratch_left, threads, parallel
        }
        rl_kernel_call_v1 { size, reserved, host, context, n_args }
        rl_kernel_v1 { version, size, name, signature, key, self_, run, flags }
        rl_error { size, code, instruction, delegate, text }
        rl_allocator { size, reserved, userdata, allocate, free }
        rl_source { size, reserved, bytes, userdata, read }
        rl_module_options {
            size, threads, memory_limit, scratch_bytes, max_instructions, data_path, backends,
            backend_libraries, n_backends, n_backend_libraries, kernels, kernel_libraries,
            n_kernels, n_kernel_libraries, reads_file, guards_file, reports_failures, reserved
        }
        rl_module_info { size, n_methods, threads, reserved, memory_in_use, memory_resident }
        rl_method_info {
            size, is_loaded, n_inputs, n_outputs, name, arenas, shared_arenas, structures,
            outputs, scratch, instructions
        }
        rl_value_info {
            size, kind, name, dtype, rank, min_sizes, max_sizes, symbols, dim_order, nbytes, i, d,
            text, min_int, max_int, is_fixed, is_planned
        }
        rl_state_info {
            size, dtype, name, method, rank, sizes, dim_order, reserved, data, nbytes
        }
        rl_trace_options { size, values, bytes, value_bytes }
        rl_llm_options {
            size, threads, memory_limit, data_path, reads_file, guards_file, cache, max_texts,
            cache_limit, prefill_rows, chat_template, backends, backend_libraries, n_backends,
            n_backend_libraries, kernels, kernel_libraries, n_kernels, n_kernel_libraries
        }
        rl_llm_info {
            size, cache_dtype, vocabulary, context, hidden, page_bytes, cache_bytes, cache_limit,
            has_tokenizer, has_chat_template
        }
        rl_generate_options {
            size, n, max_tokens, seed, temperature, top_p, min_p, typical_p, top_k,
            repetition_penalty, presence_penalty, frequency_penalty, stop, stop_tokens, n_stop,
            n_stop_tokens, ignores_end, echoes, has_special, shifts, keep, guesses, logprobs,
            grammar, adapter
        }
        rl_piece { size, choice, text, tokens, logprobs, n_tokens, finish }
        rl_statistics {
            size, finish, prompt_tokens, reused_tokens, output_tokens, guessed_tokens,
            accepted_tokens, recomputed_tokens, steps, submitted_ns, started_ns, first_token_ns,
            finished_ns
        }
    }
}

fn description() -> Vec<String> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../cpp/c_api/abi");
    let name = format!("v{RL_ABI_MAJOR}.{RL_ABI_MINOR}.txt");
    let text = fs::read_to_string(folder.join(&name)).expect(&name);
    text.lines().map(str::to_owned).collect()
}

/// The sources without comments and breaks of lines.
fn source() -> String {
    let lines = SOURCES.iter().flat_map(|text| text.lines());
    let code: Vec<&str> = lines.map(|line| line.split("//").next().unwrap_or_default()).collect();
    let line = code.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace("< ", "<").replace("( ", "(").replace(", >", ">").replace(", )", ")")
}

/// What stands between `start` and the next `end`, for each `start`.
fn between<'a>(text: &'a str, start: &'a str, end: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(start).skip(1).map(move |rest| rest.split(end).next().unwrap_or_default())
}

/// Parts at the commas that are in no brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0, 0);
    for (i, character) in text.char_indices() {
        match character {
            '(' | '[' | '<' => depth += 1,
            ')' | ']' => depth -= 1,
            '>' if !text[..i].ends_with('-') => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..i].trim());
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.into_iter().filter(|part| !part.is_empty()).collect()
}

/// A type as the description has it.
fn c_type(rust: &str) -> String {
    let rust = rust.trim();
    if let Some(pointed) = rust.strip_prefix("*const ") {
        let is_pointer = pointed.starts_with('*');
        let pointed = c_type(pointed);
        return if is_pointer { format!("{pointed} const*") } else { format!("const {pointed}*") };
    }
    if let Some(pointed) = rust.strip_prefix("*mut ") {
        return c_type(pointed) + "*";
    }
    if let Some(array) = rust.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let (item, count) = array.split_once("; ").expect(rust);
        return format!("{}[{count}]", c_type(item));
    }
    if let Some(function) = rust.strip_prefix("Option<unsafe extern \"C\" fn(") {
        return c_function(function.strip_suffix('>').expect(rust));
    }
    match rust {
        "u8" => "uint8_t",
        "i32" => "int32_t",
        "u32" => "uint32_t",
        "i64" => "int64_t",
        "u64" => "uint64_t",
        "usize" => "size_t",
        "f32" => "float",
        "f64" => "double",
        "c_char" => "char",
        "c_void" | "" => "void",
        other => other,
    }
    .to_owned()
}

/// A function's type, from what follows its opening bracket.
fn c_function(rest: &str) -> String {
    let (arguments, result) = rest.rsplit_once(')').expect(rest);
    let listed =
        split(arguments).iter().map(|a| c_type(a.split_once(": ").expect(a).1)).collect::<Vec<_>>();
    let listed = if listed.is_empty() { "void".to_owned() } else { listed.join(", ") };
    format!("{}({listed})", c_type(result.trim().trim_start_matches("-> ")))
}

fn check<T: PartialEq + Debug>(known: &BTreeMap<String, T>, wanted: &BTreeMap<String, T>) {
    let differs = |name: &&String| known.get(*name) != wanted.get(*name);
    let names = known.keys().chain(wanted.keys()).filter(differs);
    let faults = names.map(|n| format!("{n}: {:?}, wanted {:?}", known.get(n), wanted.get(n)));
    let faults = faults.collect::<Vec<_>>();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn constants_are_as_described() {
    let source = source();
    let mut known = BTreeMap::new();
    for constant in between(&source, "pub const ", ";") {
        let (name, value) = constant.split_once(": ").expect(constant);
        let value = value.split_once("= ").expect(constant).1;
        if let Ok(number) = value.parse::<i64>() {
            known.insert(name.to_owned(), number);
        }
    }
    let description = description();
    let lines = description.iter().filter_map(|line| line.strip_prefix("constant "));
    let wanted: BTreeMap<String, i64> = lines
        .map(|line| line.split_once(" = ").expect(line))
        .map(|(name, value)| (name.to_owned(), value.parse().expect(name)))
        .collect();
    // The headers' macros, which the description does not have.
    let is_macro = |name: &str| name.ends_with("_VERSION") || name.starts_with("RL_ABI_");
    known.retain(|name, _| !is_macro(name) && name != "RL_KERNEL_IN_DELEGATES");
    check(&known, &wanted);
}

#[test]
fn sizes_and_offsets_are_as_described() {
    let mut wanted = Vec::new();
    for line in description() {
        if line.starts_with("struct ") {
            wanted.push(line);
        } else if let Some(field) = line.strip_prefix("  ") {
            let (place, rest) = field.split_once(' ').expect(field);
            let name = rest.split(':').next().unwrap_or_default();
            let name = if name == "self" { "self_" } else { name }; // a keyword
            wanted.push(format!("{} {name}", place.split('+').next().unwrap_or_default()));
        }
    }
    assert_eq!(layouts(), wanted);
}

#[test]
fn fields_have_the_types_that_are_described() {
    let source = source();
    let (mut wanted, mut struct_name) = (BTreeMap::new(), String::new());
    for line in description() {
        if let Some(rest) = line.strip_prefix("struct ") {
            struct_name = rest.split(':').next().unwrap_or_default().to_owned();
        } else if let Some(field) = line.strip_prefix("  ") {
            let (name, kind) = field.split_once(' ').expect(field).1.split_once(": ").expect(field);
            let name = if name == "self" { "self_" } else { name };
            wanted.insert(format!("{struct_name}.{name}"), kind.to_owned());
        }
    }
    let mut known = BTreeMap::new();
    for body in between(&source, "pub struct ", "}") {
        let (name, fields) = body.split_once(" {").expect(body);
        for field in split(fields) {
            if let Some((field, kind)) = field.strip_prefix("pub ").and_then(|f| f.split_once(": "))
            {
                known.insert(format!("{name}.{field}"), c_type(kind));
            }
        }
    }
    check(&known, &wanted);
}

#[test]
fn functions_and_other_types_are_as_described() {
    let source = source();
    let mut known = BTreeMap::new();
    for function in between(&source, "pub fn ", ";") {
        let (name, rest) = function.split_once('(').expect(function);
        known.insert(format!("function {name}"), c_function(rest));
    }
    for alias in between(&source, "pub type ", ";") {
        let (name, kind) = alias.split_once(" = ").expect(alias);
        known.insert(format!("type {name}"), c_type(kind));
    }
    let description = description();
    let lines = description
        .iter()
        .filter(|line| line.starts_with("function ") || line.starts_with("type "));
    let wanted: BTreeMap<String, String> = lines
        .map(|line| line.split_once(" = ").expect(line))
        .map(|(name, kind)| (name.to_owned(), kind.to_owned()))
        .collect();
    check(&known, &wanted);
    assert!(wanted.len() > 60);
}

#[test]
fn the_library_has_this_version() {
    // SAFETY: no arguments that must live.
    unsafe {
        assert_eq!(rl_abi_version() / 1000, RL_ABI_MAJOR);
        assert_eq!(rl_check_abi(RL_ABI_VERSION, std::ptr::null_mut()), RL_OK);
        let mut error = rl_error::default();
        assert_eq!(rl_check_abi(RL_ABI_VERSION + 1000, &mut error), RL_NOT_SUPPORTED);
        assert_ne!(error.text[0], 0);
    }
}

#[test]
fn defaults_are_those_of_the_macros() {
    let error = rl_error::default();
    assert_eq!((error.size, error.instruction), (1040, RL_NO_INDEX));
    let value = rl_value_v1::default();
    assert!(value.size == 104 && value.kind == RL_NONE && value.data.is_null());
    assert_eq!(rl_generate_options::default().size, 128);
}
