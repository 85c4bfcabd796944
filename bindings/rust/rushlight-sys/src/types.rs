//! `rushlight.h`: its constants and types.

use std::ffi::{c_char, c_void};

use crate::abi::{rl_backend_v1, rl_kernel_v1, rl_text_v1};

pub const RL_ABI_MAJOR: u32 = 1;
pub const RL_ABI_MINOR: u32 = 0;
pub const RL_ABI_VERSION: u32 = RL_ABI_MAJOR * 1000 + RL_ABI_MINOR;

pub type rl_status = i32;

pub const RL_END_OF_METHOD: rl_status = 3;
pub const RL_ALREADY_LOADED: rl_status = 4;
pub const RL_INVALID_TYPE: rl_status = 19;
pub const RL_OPERATOR_MISSING: rl_status = 20;
pub const RL_REGISTRATION_EXCEEDING_MAX_KERNELS: rl_status = 21;
pub const RL_REGISTRATION_ALREADY_REGISTERED: rl_status = 22;
pub const RL_ACCESS_FAILED: rl_status = 34;
pub const RL_INVALID_PROGRAM: rl_status = 35;
pub const RL_INVALID_EXTERNAL_DATA: rl_status = 36;
pub const RL_CANCELLED: rl_status = 128;

pub const RL_MAX_RANK: usize = 16;
pub const RL_ERROR_TEXT: usize = 1024;

pub const RL_NO_INDEX: u32 = u32::MAX;

pub const RL_UINT8: i32 = 0;
pub const RL_INT8: i32 = 1;
pub const RL_INT16: i32 = 2;
pub const RL_INT32: i32 = 3;
pub const RL_INT64: i32 = 4;
pub const RL_FLOAT16: i32 = 5;
pub const RL_FLOAT32: i32 = 6;
pub const RL_FLOAT64: i32 = 7;
pub const RL_COMPLEX64: i32 = 9;
pub const RL_COMPLEX128: i32 = 10;
pub const RL_BOOLEAN: i32 = 11;
pub const RL_BFLOAT16: i32 = 15;
pub const RL_UINT16: i32 = 27;
pub const RL_UINT32: i32 = 28;
pub const RL_UINT64: i32 = 29;

pub const RL_LOG_DEBUG: i32 = 0;
pub const RL_LOG_INFO: i32 = 1;
pub const RL_LOG_WARNING: i32 = 2;
pub const RL_LOG_ERROR: i32 = 3;

pub const RL_TRACE_TIMES: u32 = 0;
pub const RL_TRACE_OUTPUTS: u32 = 1;
pub const RL_TRACE_ALL_VALUES: u32 = 2;
pub const RL_CACHE_AUTOMATIC: u32 = 0;
pub const RL_CACHE_FLOAT32: u32 = 1;
pub const RL_CACHE_FLOAT16: u32 = 2;
pub const RL_CACHE_INT8: u32 = 3;
pub const RL_ADD_SPECIAL: u32 = 1;
pub const RL_PARSE_SPECIAL: u32 = 2;
pub const RL_SKIP_SPECIAL: u32 = 4;
pub const RL_FINISH_NONE: u32 = 0;
pub const RL_FINISH_STOP: u32 = 1;
pub const RL_FINISH_LENGTH: u32 = 2;
pub const RL_FINISH_CONTEXT: u32 = 3;
pub const RL_FINISH_CANCELLED: u32 = 4;
pub const RL_FINISH_FAILED: u32 = 5;

// Handles, of which there are only pointers.

#[repr(C)]
pub struct rl_module {
    _private: [u8; 0],
}

#[repr(C)]
pub struct rl_llm {
    _private: [u8; 0],
}

#[repr(C)]
pub struct rl_session {
    _private: [u8; 0],
}

#[repr(C)]
pub struct rl_grammar {
    _private: [u8; 0],
}

#[repr(C)]
pub struct rl_adapter {
    _private: [u8; 0],
}

pub type rl_log_fn =
    Option<unsafe extern "C" fn(userdata: *mut c_void, level: i32, line: rl_text_v1)>;

pub type rl_write_fn =
    Option<unsafe extern "C" fn(userdata: *mut c_void, data: *const c_void, bytes: usize) -> i32>;

pub type rl_piece_fn =
    Option<unsafe extern "C" fn(userdata: *mut c_void, piece: *const rl_piece) -> i32>;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rl_error {
    pub size: u32,
    pub code: rl_status,
    pub instruction: u32,
    pub delegate: u32,
    pub text: [c_char; RL_ERROR_TEXT],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rl_allocator {
    pub size: u32,
    pub reserved: u32,
    pub userdata: *mut c_void,
    pub allocate: Option<
        unsafe extern "C" fn(userdata: *mut c_void, bytes: usize, alignment: usize) -> *mut c_void,
    >,
    pub free: Option<unsafe extern "C" fn(userdata: *mut c_void, memory: *mut c_void)>,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rl_source {
    pub size: u32,
    pub reserved: u32,
    pub bytes: u64,
    pub userdata: *mut c_void,
    pub read: Option<
        unsafe extern "C" fn(
            userdata: *mut c_void,
            offset: u64,
            to: *mut c_void,
            bytes: usize,
        ) -> i32,
    >,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rl_module_options {
    pub size: u32,
    pub threads: u32,
    pub memory_limit: u64,
    pub scratch_bytes: u64,
    pub max_instructions: u64,
    pub data_path: *const c_char,
    pub backends: *const *const rl_backend_v1,
    pub backend_libraries: *const *const c_char,
    pub n_backends: u32,
    pub n_backend_libraries: u32,
    pub kernels: *const *const rl_kernel_v1,
    pub kernel_libraries: *const *const c_char,
    pub n_kernels: u32,
    pub n_kernel_libraries: u32,
    pub reads_file: u32,
    pub guards_file: u32,
    pub reports_failures: u32,
    pub reserved: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rl_module_info {
    pub size: u32,
    pub n_methods: u32,
    pub threads: u32,
    pub reserved: u32,
    pub memory_in_use: u64,
    pub memory_resident: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rl_method_info {
    pub size: u32,
    pub is_loaded: u32,
    pub n_inputs: u32,
    pub n_outputs: u32,
    pub name: rl_text_v1,
    pub arenas: u64,
    pub shared_arenas: u64,
    pub structures: u64,
    pub outputs: u64,
    pub scratch: u64,
    pub instructions: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rl_value_info {
    pub size: u32,
    pub kind: u32,
    pub name: rl_text_v1,
    pub dtype: i32,
    pub rank: u32,
    pub min_sizes: [i32; RL_MAX_RANK],
    pub max_sizes: [i32; RL_MAX_RANK],
    pub symbols: [u32; RL_MAX_RANK],
    pub dim_order: [u8; RL_MAX_RANK],
    pub nbytes: u64,
    pub i: i64,
    pub d: f64,
    pub text: rl_text_v1,
    pub min_int: i64,
    pub max_int: i64,
    pub is_fixed: u32,
    pub is_planned: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rl_state_info {
    pub size: u32,
    pub dtype: i32,
    pub name: rl_text_v1,
    pub method: rl_text_v1,
    pub rank: u32,
    pub sizes: [i32; RL_MAX_RANK],
    pub dim_order: [u8; RL_MAX_RANK],
    pub reserved: u32,
    pub data: *mut c_void,
    pub nbytes: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rl_trace_options {
    pub size: u32,
    pub values: u32,
    pub bytes: u64,
    pub value_bytes: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rl_llm_options {
    pub size: u32,
    pub threads: u32,
    pub memory_limit: u64,
    pub data_path: *const c_char,
    pub reads_file: u32,
    pub guards_file: u32,
    pub cache: u32,
    pub max_texts: u32,
    pub cache_limit: u64,
    pub prefill_rows: u64,
    pub chat_template: *const c_char,
    pub backends: *const *const rl_backend_v1,
    pub backend_libraries: *const *const c_char,
    pub n_backends: u32,
    pub n_backend_libraries: u32,
    pub kernels: *const *const rl_kernel_v1,
    pub kernel_libraries: *const *const c_char,
    pub n_kernels: u32,
    pub n_kernel_libraries: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rl_llm_info {
    pub size: u32,
    pub cache_dtype: i32,
    pub vocabulary: u64,
    pub context: u64,
    pub hidden: u64,
    pub page_bytes: u64,
    pub cache_bytes: u64,
    pub cache_limit: u64,
    pub has_tokenizer: u32,
    pub has_chat_template: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rl_generate_options {
    pub size: u32,
    pub n: u32,
    pub max_tokens: u64,
    pub seed: u64,
    pub temperature: f32,
    pub top_p: f32,
    pub min_p: f32,
    pub typical_p: f32,
    pub top_k: u32,
    pub repetition_penalty: f32,
    pub presence_penalty: f32,
    pub frequency_penalty: f32,
    pub stop: *const rl_text_v1,
    pub stop_tokens: *const i32,
    pub n_stop: u32,
    pub n_stop_tokens: u32,
    pub ignores_end: u32,
    pub echoes: u32,
    pub has_special: u32,
    pub shifts: u32,
    pub keep: u64,
    pub guesses: u32,
    pub logprobs: i32,
    pub grammar: *mut rl_grammar,
    pub adapter: *mut rl_adapter,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rl_piece {
    pub size: u32,
    pub choice: u32,
    pub text: rl_text_v1,
    pub tokens: *const i32,
    pub logprobs: *const f32,
    pub n_tokens: u32,
    pub finish: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rl_statistics {
    pub size: u32,
    pub finish: u32,
    pub prompt_tokens: u64,
    pub reused_tokens: u64,
    pub output_tokens: u64,
    pub guessed_tokens: u64,
    pub accepted_tokens: u64,
    pub recomputed_tokens: u64,
    pub steps: u64,
    pub submitted_ns: u64,
    pub started_ns: u64,
    pub first_token_ns: u64,
    pub finished_ns: u64,
}

with_size!(
    rl_allocator,
    rl_source,
    rl_module_options,
    rl_module_info,
    rl_method_info,
    rl_value_info,
    rl_state_info,
    rl_trace_options,
    rl_llm_options,
    rl_llm_info,
    rl_generate_options,
    rl_piece,
    rl_statistics,
);
