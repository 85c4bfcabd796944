//! The functions of `rushlight.h`, whose comments there say what they do, who owns what, and which
//! threads may call them.

use std::ffi::{c_char, c_void};

use crate::abi::{rl_bytes_v1, rl_text_v1, rl_value_v1};
use crate::types::*;

extern "C" {
    pub fn rl_abi_version() -> u32;
    pub fn rl_check_abi(version: u32, error: *mut rl_error) -> rl_status;
    pub fn rl_version() -> *const c_char;
    pub fn rl_status_name(code: rl_status) -> *const c_char;
    pub fn rl_set_allocator(allocator: *const rl_allocator, error: *mut rl_error) -> rl_status;
    pub fn rl_set_log(log: rl_log_fn, userdata: *mut c_void, error: *mut rl_error) -> rl_status;
    pub fn rl_module_open(
        path: *const c_char,
        options: *const rl_module_options,
        module: *mut *mut rl_module,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_module_open_memory(
        data: *const c_void,
        bytes: usize,
        options: *const rl_module_options,
        module: *mut *mut rl_module,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_module_open_source(
        source: *const rl_source,
        options: *const rl_module_options,
        module: *mut *mut rl_module,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_module_close(module: *mut rl_module, error: *mut rl_error) -> rl_status;
    pub fn rl_module_clone(
        module: *mut rl_module,
        copy: *mut *mut rl_module,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_module_fork(
        module: *mut rl_module,
        copy: *mut *mut rl_module,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_module_describe(
        module: *mut rl_module,
        info: *mut rl_module_info,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_module_method_name(
        module: *mut rl_module,
        index: u32,
        name: *mut rl_text_v1,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_module_describe_method(
        module: *mut rl_module,
        method: *const c_char,
        info: *mut rl_method_info,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_module_describe_input(
        module: *mut rl_module,
        method: *const c_char,
        index: u32,
        info: *mut rl_value_info,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_module_describe_output(
        module: *mut rl_module,
        method: *const c_char,
        index: u32,
        info: *mut rl_value_info,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_module_relation_count(
        module: *mut rl_module,
        method: *const c_char,
        count: *mut u32,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_module_relation(
        module: *mut rl_module,
        method: *const c_char,
        index: u32,
        text: *mut rl_text_v1,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_module_load(
        module: *mut rl_module,
        method: *const c_char,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_module_unload(
        module: *mut rl_module,
        method: *const c_char,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_module_run(
        module: *mut rl_module,
        method: *const c_char,
        inputs: *const rl_value_v1,
        n_inputs: u32,
        outputs: *mut rl_value_v1,
        n_outputs: u32,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_module_set_output(
        module: *mut rl_module,
        method: *const c_char,
        index: u32,
        data: *mut c_void,
        bytes: usize,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_module_cancel(module: *mut rl_module, error: *mut rl_error) -> rl_status;
    pub fn rl_module_seed(module: *mut rl_module, seed: u64, error: *mut rl_error) -> rl_status;
    pub fn rl_module_state_count(
        module: *mut rl_module,
        count: *mut u32,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_module_state(
        module: *mut rl_module,
        index: u32,
        info: *mut rl_state_info,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_module_snapshot(
        module: *mut rl_module,
        to: *mut c_void,
        capacity: usize,
        bytes: *mut usize,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_module_restore(
        module: *mut rl_module,
        from: *const c_void,
        bytes: usize,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_module_reset_state(module: *mut rl_module, error: *mut rl_error) -> rl_status;
    pub fn rl_module_trace_start(
        module: *mut rl_module,
        options: *const rl_trace_options,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_module_trace_stop(module: *mut rl_module, error: *mut rl_error) -> rl_status;
    pub fn rl_module_trace_write(
        module: *mut rl_module,
        write: rl_write_fn,
        userdata: *mut c_void,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_module_trace_values(
        module: *mut rl_module,
        write: rl_write_fn,
        userdata: *mut c_void,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_module_trace_save(
        module: *mut rl_module,
        path: *const c_char,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_module_failure_report(
        module: *mut rl_module,
        report: *mut rl_bytes_v1,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_llm_open(
        path: *const c_char,
        options: *const rl_llm_options,
        llm: *mut *mut rl_llm,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_llm_open_memory(
        data: *const c_void,
        bytes: usize,
        options: *const rl_llm_options,
        llm: *mut *mut rl_llm,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_llm_close(llm: *mut rl_llm, error: *mut rl_error) -> rl_status;
    pub fn rl_llm_describe(
        llm: *mut rl_llm,
        info: *mut rl_llm_info,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_llm_trace_start(
        llm: *mut rl_llm,
        options: *const rl_trace_options,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_llm_trace_stop(llm: *mut rl_llm, error: *mut rl_error) -> rl_status;
    pub fn rl_llm_trace_write(
        llm: *mut rl_llm,
        write: rl_write_fn,
        userdata: *mut c_void,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_llm_trace_values(
        llm: *mut rl_llm,
        write: rl_write_fn,
        userdata: *mut c_void,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_llm_trace_save(
        llm: *mut rl_llm,
        path: *const c_char,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_llm_encode(
        llm: *mut rl_llm,
        text: rl_text_v1,
        flags: u32,
        tokens: *mut i32,
        capacity: usize,
        count: *mut usize,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_llm_decode(
        llm: *mut rl_llm,
        tokens: *const i32,
        n_tokens: usize,
        flags: u32,
        text: *mut c_char,
        capacity: usize,
        count: *mut usize,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_llm_encode_chat(
        llm: *mut rl_llm,
        json: rl_text_v1,
        tokens: *mut i32,
        capacity: usize,
        count: *mut usize,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_grammar_from_regex(
        llm: *mut rl_llm,
        pattern: rl_text_v1,
        grammar: *mut *mut rl_grammar,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_grammar_from_json_schema(
        llm: *mut rl_llm,
        schema: rl_text_v1,
        grammar: *mut *mut rl_grammar,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_grammar_close(grammar: *mut rl_grammar, error: *mut rl_error) -> rl_status;
    pub fn rl_adapter_open(
        llm: *mut rl_llm,
        path: *const c_char,
        adapter: *mut *mut rl_adapter,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_adapter_close(adapter: *mut rl_adapter, error: *mut rl_error) -> rl_status;
    pub fn rl_llm_default_options(
        llm: *mut rl_llm,
        options: *mut rl_generate_options,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_llm_generate(
        llm: *mut rl_llm,
        prompt: *const i32,
        n_prompt: usize,
        options: *const rl_generate_options,
        write: rl_piece_fn,
        userdata: *mut c_void,
        statistics: *mut rl_statistics,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_llm_embed(
        llm: *mut rl_llm,
        texts: *const rl_text_v1,
        n_texts: u32,
        normalizes: u32,
        truncates: u32,
        vectors: *mut f32,
        capacity: usize,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_session_open(
        llm: *mut rl_llm,
        session: *mut *mut rl_session,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_session_restore(
        llm: *mut rl_llm,
        path: *const c_char,
        adapter: *mut rl_adapter,
        session: *mut *mut rl_session,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_session_close(session: *mut rl_session, error: *mut rl_error) -> rl_status;
    pub fn rl_session_generate(
        session: *mut rl_session,
        prompt: *const i32,
        n_prompt: usize,
        options: *const rl_generate_options,
        write: rl_piece_fn,
        userdata: *mut c_void,
        statistics: *mut rl_statistics,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_session_cancel(session: *mut rl_session, error: *mut rl_error) -> rl_status;
    pub fn rl_session_fork(
        session: *mut rl_session,
        copy: *mut *mut rl_session,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_session_rewind(
        session: *mut rl_session,
        count: usize,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_session_set_tokens(
        session: *mut rl_session,
        tokens: *const i32,
        n_tokens: usize,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_session_tokens(
        session: *mut rl_session,
        tokens: *mut i32,
        capacity: usize,
        count: *mut usize,
        error: *mut rl_error,
    ) -> rl_status;
    pub fn rl_session_save(
        session: *mut rl_session,
        path: *const c_char,
        error: *mut rl_error,
    ) -> rl_status;
}
