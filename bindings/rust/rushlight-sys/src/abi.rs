//! `rl_value_v1.h`, `rl_backend_v1.h` and `rl_kernel_v1.h`: codes, values, and the tables of
//! functions that backends and kernels are.

use std::ffi::{c_char, c_void};

pub const RL_OK: i32 = 0;
pub const RL_INTERNAL: i32 = 1;
pub const RL_INVALID_STATE: i32 = 2;
pub const RL_NOT_SUPPORTED: i32 = 16;
pub const RL_NOT_IMPLEMENTED: i32 = 17;
pub const RL_INVALID_ARGUMENT: i32 = 18;
pub const RL_NOT_FOUND: i32 = 32;
pub const RL_MEMORY_ALLOCATION_FAILED: i32 = 33;
pub const RL_OUT_OF_RESOURCES: i32 = 37;
pub const RL_DELEGATE_INVALID_COMPATIBILITY: i32 = 48;
pub const RL_DELEGATE_MEMORY_ALLOCATION_FAILED: i32 = 49;
pub const RL_DELEGATE_INVALID_HANDLE: i32 = 50;

pub const RL_NONE: u32 = 0;
pub const RL_TENSOR: u32 = 1;
pub const RL_STRING: u32 = 2;
pub const RL_DOUBLE: u32 = 3;
pub const RL_INT: u32 = 4;
pub const RL_BOOL: u32 = 5;
pub const RL_LIST: u32 = 6;

pub const RL_BACKEND_V1_VERSION: u32 = 1;
pub const RL_KERNEL_V1_VERSION: u32 = 1;
pub const RL_KERNEL_IN_DELEGATES: u64 = 1;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rl_text_v1 {
    pub data: *const c_char,
    pub size: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rl_bytes_v1 {
    pub data: *const c_void,
    pub size: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rl_value_v1 {
    pub size: u32,
    pub kind: u32,
    pub i: i64,
    pub d: f64,
    pub text: rl_text_v1,
    pub data: *mut c_void,
    pub sizes: *const i32,
    pub strides: *const i32,
    pub dim_order: *const u8,
    pub rank: u32,
    pub dtype: i32,
    pub nbytes: usize,
    pub capacity: usize,
    pub n_items: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rl_spec_v1 {
    pub key: rl_text_v1,
    pub value: rl_bytes_v1,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rl_option_v1 {
    pub size: u32,
    pub kind: u32,
    pub i: i64,
    pub text: rl_text_v1,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rl_host_v1 {
    pub version: u32,
    pub size: u32,
    pub explain: Option<unsafe extern "C" fn(context: *mut c_void, text: rl_text_v1)>,
    pub fail_at_number: Option<unsafe extern "C" fn(context: *mut c_void, id: i64)>,
    pub fail_at_text: Option<unsafe extern "C" fn(context: *mut c_void, id: rl_text_v1)>,
    pub allocate: Option<
        unsafe extern "C" fn(context: *mut c_void, bytes: usize, alignment: usize) -> *mut c_void,
    >,
    pub event: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            id: rl_text_v1,
            number: i64,
            start_ns: u64,
            stop_ns: u64,
        ),
    >,
    pub now_ns: Option<unsafe extern "C" fn() -> u64>,
    pub named_data: Option<
        unsafe extern "C" fn(context: *mut c_void, key: rl_text_v1, data: *mut rl_bytes_v1) -> i32,
    >,
    pub option: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            key: rl_text_v1,
            option: *mut rl_option_v1,
        ) -> i32,
    >,
    pub release_payload: Option<unsafe extern "C" fn(context: *mut c_void)>,
    pub value: Option<
        unsafe extern "C" fn(context: *mut c_void, index: usize, value: *mut rl_value_v1) -> i32,
    >,
    pub resize: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            index: usize,
            sizes: *const i32,
            rank: u32,
        ) -> i32,
    >,
    pub event_with: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            id: rl_text_v1,
            number: i64,
            start_ns: u64,
            stop_ns: u64,
            metadata: rl_bytes_v1,
        ),
    >,
    pub wants_value:
        Option<unsafe extern "C" fn(context: *mut c_void, id: rl_text_v1, number: i64) -> i32>,
    pub tell_value: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            id: rl_text_v1,
            number: i64,
            dtype: i32,
            sizes: *const i32,
            rank: u32,
            data: rl_bytes_v1,
        ) -> i32,
    >,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rl_init_v1 {
    pub size: u32,
    pub n_specs: u32,
    pub host: *const rl_host_v1,
    pub context: *mut c_void,
    pub method: rl_text_v1,
    pub payload: rl_bytes_v1,
    pub specs: *const rl_spec_v1,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rl_call_v1 {
    pub size: u32,
    pub is_traced: u32,
    pub host: *const rl_host_v1,
    pub context: *mut c_void,
    pub n_args: usize,
    pub n_inputs: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rl_backend_v1 {
    pub version: u32,
    pub size: u32,
    pub id: *const c_char,
    pub self_: *mut c_void,
    pub is_available: Option<unsafe extern "C" fn(me: *mut c_void) -> i32>,
    pub init: Option<
        unsafe extern "C" fn(
            me: *mut c_void,
            init: *const rl_init_v1,
            handle: *mut *mut c_void,
        ) -> i32,
    >,
    pub execute: Option<
        unsafe extern "C" fn(me: *mut c_void, handle: *mut c_void, call: *const rl_call_v1) -> i32,
    >,
    pub destroy: Option<unsafe extern "C" fn(me: *mut c_void, handle: *mut c_void)>,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rl_kernel_host_v1 {
    pub version: u32,
    pub size: u32,
    pub explain: Option<unsafe extern "C" fn(context: *mut c_void, text: rl_text_v1)>,
    pub value: Option<
        unsafe extern "C" fn(context: *mut c_void, index: usize, value: *mut rl_value_v1) -> i32,
    >,
    pub item: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            index: usize,
            item: usize,
            value: *mut rl_value_v1,
        ) -> i32,
    >,
    pub resize: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            index: usize,
            item: usize,
            sizes: *const i32,
            rank: u32,
        ) -> i32,
    >,
    pub scratch: Option<unsafe extern "C" fn(context: *mut c_void, bytes: usize) -> *mut c_void>,
    pub scratch_left: Option<unsafe extern "C" fn(context: *mut c_void) -> usize>,
    pub threads: Option<unsafe extern "C" fn(context: *mut c_void) -> usize>,
    pub parallel: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            items: i64,
            grain: i64,
            body: rl_kernel_body_v1,
            data: *mut c_void,
        ),
    >,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rl_kernel_call_v1 {
    pub size: u32,
    pub reserved: u32,
    pub host: *const rl_kernel_host_v1,
    pub context: *mut c_void,
    pub n_args: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct rl_kernel_v1 {
    pub version: u32,
    pub size: u32,
    pub name: *const c_char,
    pub signature: *const c_char,
    pub key: *const c_char,
    pub self_: *mut c_void,
    pub run: Option<unsafe extern "C" fn(me: *mut c_void, call: *const rl_kernel_call_v1) -> i32>,
    /// `RL_KERNEL_IN_DELEGATES`, or 0.
    pub flags: u64,
}

pub type rl_get_backend_v1_fn = Option<unsafe extern "C" fn(index: u32) -> *const rl_backend_v1>;

pub type rl_kernel_body_v1 = Option<unsafe extern "C" fn(data: *mut c_void, begin: i64, end: i64)>;

pub type rl_get_kernel_v1_fn = Option<unsafe extern "C" fn(index: u32) -> *const rl_kernel_v1>;

with_size!(rl_value_v1, rl_option_v1);
