// rushlight.h as P/Invoke has it: structs and functions by their names there, whose comments are the
// documentation. The tests hold this file to the description of the ABI (cpp/c_api/abi).
//
// Not here: rl_set_allocator, rl_set_log and rl_module_open_source, and the tables of backends and
// kernels that are linked.
using System;
using System.Runtime.InteropServices;

#pragma warning disable 169, 649, IDE1006 // fields that the library alone writes; names of C

namespace Rushlight {
  [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
  internal delegate int rl_write_fn(IntPtr userdata, IntPtr data, UIntPtr bytes);

  [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
  internal delegate int rl_piece_fn(IntPtr userdata, ref rl_piece piece);

  [StructLayout(LayoutKind.Sequential)]
  internal struct rl_text_v1 {
    internal IntPtr data;
    internal UIntPtr size;
  }

  [StructLayout(LayoutKind.Sequential)]
  internal struct rl_bytes_v1 {
    internal IntPtr data;
    internal UIntPtr size;
  }

  [StructLayout(LayoutKind.Sequential)]
  internal struct rl_value_v1 {
    internal uint size;
    internal uint kind;
    internal long i;
    internal double d;
    internal rl_text_v1 text;
    internal IntPtr data;
    internal IntPtr sizes;
    internal IntPtr strides;
    internal IntPtr dim_order;
    internal uint rank;
    internal int dtype;
    internal UIntPtr nbytes;
    internal UIntPtr capacity;
    internal UIntPtr n_items;
  }

  [StructLayout(LayoutKind.Sequential)]
  internal struct rl_error {
    internal uint size;
    internal int code;
    internal uint instruction;
    internal uint @delegate;
    [MarshalAs(UnmanagedType.ByValArray, SizeConst = 1024)]
    internal byte[] text;
  }

  [StructLayout(LayoutKind.Sequential)]
  internal struct rl_module_options {
    internal uint size;
    internal uint threads;
    internal ulong memory_limit;
    internal ulong scratch_bytes;
    internal ulong max_instructions;
    internal IntPtr data_path;
    internal IntPtr backends;
    internal IntPtr backend_libraries;
    internal uint n_backends;
    internal uint n_backend_libraries;
    internal IntPtr kernels;
    internal IntPtr kernel_libraries;
    internal uint n_kernels;
    internal uint n_kernel_libraries;
    internal uint reads_file;
    internal uint guards_file;
    internal uint reports_failures;
    internal uint reserved;
  }

  [StructLayout(LayoutKind.Sequential)]
  internal struct rl_module_info {
    internal uint size;
    internal uint n_methods;
    internal uint threads;
    internal uint reserved;
    internal ulong memory_in_use;
    internal ulong memory_resident;
  }

  [StructLayout(LayoutKind.Sequential)]
  internal struct rl_method_info {
    internal uint size;
    internal uint is_loaded;
    internal uint n_inputs;
    internal uint n_outputs;
    internal rl_text_v1 name;
    internal ulong arenas;
    internal ulong shared_arenas;
    internal ulong structures;
    internal ulong outputs;
    internal ulong scratch;
    internal ulong instructions;
  }

  [StructLayout(LayoutKind.Sequential)]
  internal struct rl_value_info {
    internal uint size;
    internal uint kind;
    internal rl_text_v1 name;
    internal int dtype;
    internal uint rank;
    [MarshalAs(UnmanagedType.ByValArray, SizeConst = 16)]
    internal int[] min_sizes;
    [MarshalAs(UnmanagedType.ByValArray, SizeConst = 16)]
    internal int[] max_sizes;
    [MarshalAs(UnmanagedType.ByValArray, SizeConst = 16)]
    internal uint[] symbols;
    [MarshalAs(UnmanagedType.ByValArray, SizeConst = 16)]
    internal byte[] dim_order;
    internal ulong nbytes;
    internal long i;
    internal double d;
    internal rl_text_v1 text;
    internal long min_int;
    internal long max_int;
    internal uint is_fixed;
    internal uint is_planned;
  }

  [StructLayout(LayoutKind.Sequential)]
  internal struct rl_state_info {
    internal uint size;
    internal int dtype;
    internal rl_text_v1 name;
    internal rl_text_v1 method;
    internal uint rank;
    [MarshalAs(UnmanagedType.ByValArray, SizeConst = 16)]
    internal int[] sizes;
    [MarshalAs(UnmanagedType.ByValArray, SizeConst = 16)]
    internal byte[] dim_order;
    internal uint reserved;
    internal IntPtr data;
    internal UIntPtr nbytes;
  }

  [StructLayout(LayoutKind.Sequential)]
  internal struct rl_trace_options {
    internal uint size;
    internal uint values;
    internal ulong bytes;
    internal ulong value_bytes;
  }

  [StructLayout(LayoutKind.Sequential)]
  internal struct rl_llm_options {
    internal uint size;
    internal uint threads;
    internal ulong memory_limit;
    internal IntPtr data_path;
    internal uint reads_file;
    internal uint guards_file;
    internal uint cache;
    internal uint max_texts;
    internal ulong cache_limit;
    internal ulong prefill_rows;
    internal IntPtr chat_template;
    internal IntPtr backends;
    internal IntPtr backend_libraries;
    internal uint n_backends;
    internal uint n_backend_libraries;
    internal IntPtr kernels;
    internal IntPtr kernel_libraries;
    internal uint n_kernels;
    internal uint n_kernel_libraries;
  }

  [StructLayout(LayoutKind.Sequential)]
  internal struct rl_llm_info {
    internal uint size;
    internal int cache_dtype;
    internal ulong vocabulary;
    internal ulong context;
    internal ulong hidden;
    internal ulong page_bytes;
    internal ulong cache_bytes;
    internal ulong cache_limit;
    internal uint has_tokenizer;
    internal uint has_chat_template;
  }

  [StructLayout(LayoutKind.Sequential)]
  internal struct rl_generate_options {
    internal uint size;
    internal uint n;
    internal ulong max_tokens;
    internal ulong seed;
    internal float temperature;
    internal float top_p;
    internal float min_p;
    internal float typical_p;
    internal uint top_k;
    internal float repetition_penalty;
    internal float presence_penalty;
    internal float frequency_penalty;
    internal IntPtr stop;
    internal IntPtr stop_tokens;
    internal uint n_stop;
    internal uint n_stop_tokens;
    internal uint ignores_end;
    internal uint echoes;
    internal uint has_special;
    internal uint shifts;
    internal ulong keep;
    internal uint guesses;
    internal int logprobs;
    internal IntPtr grammar;
    internal IntPtr adapter;
  }

  [StructLayout(LayoutKind.Sequential)]
  internal struct rl_piece {
    internal uint size;
    internal uint choice;
    internal rl_text_v1 text;
    internal IntPtr tokens;
    internal IntPtr logprobs;
    internal uint n_tokens;
    internal uint finish;
  }

  [StructLayout(LayoutKind.Sequential)]
  internal struct rl_statistics {
    internal uint size;
    internal uint finish;
    internal ulong prompt_tokens;
    internal ulong reused_tokens;
    internal ulong output_tokens;
    internal ulong guessed_tokens;
    internal ulong accepted_tokens;
    internal ulong recomputed_tokens;
    internal ulong steps;
    internal ulong submitted_ns;
    internal ulong started_ns;
    internal ulong first_token_ns;
    internal ulong finished_ns;
  }
  internal static class Native {
    internal const string Library = "rushlight";
    internal const uint AbiVersion = 1000;
    internal const int Ok = 0;
    internal const int MaxRank = 16;
    internal const uint NoIndex = uint.MaxValue;
    internal const uint None = 0, Tensor = 1, String = 2, Double = 3, Int = 4, Bool = 5;
    internal const uint AddSpecial = 1, ParseSpecial = 2, SkipSpecial = 4;

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern uint rl_abi_version();

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_check_abi(uint version, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern IntPtr rl_version();

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern IntPtr rl_status_name(int code);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_open(
        byte[] path, ref rl_module_options options, out IntPtr module, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_open_memory(
        IntPtr data, UIntPtr bytes, ref rl_module_options options, out IntPtr module,
        ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_close(IntPtr module, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_clone(
        ModuleHandle module, out IntPtr copy, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_fork(
        ModuleHandle module, out IntPtr copy, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_describe(
        ModuleHandle module, ref rl_module_info info, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_method_name(
        ModuleHandle module, uint index, out rl_text_v1 name, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_describe_method(
        ModuleHandle module, byte[] method, ref rl_method_info info, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_describe_input(
        ModuleHandle module, byte[] method, uint index, ref rl_value_info info, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_describe_output(
        ModuleHandle module, byte[] method, uint index, ref rl_value_info info, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_relation_count(
        ModuleHandle module, byte[] method, out uint count, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_relation(
        ModuleHandle module, byte[] method, uint index, out rl_text_v1 text, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_load(
        ModuleHandle module, byte[] method, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_unload(
        ModuleHandle module, byte[] method, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_run(
        ModuleHandle module, byte[] method, rl_value_v1[] inputs, uint n_inputs,
        [In, Out] rl_value_v1[] outputs, uint n_outputs, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_set_output(
        ModuleHandle module, byte[] method, uint index, IntPtr data, UIntPtr bytes,
        ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_cancel(ModuleHandle module, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_seed(ModuleHandle module, ulong seed, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_state_count(
        ModuleHandle module, out uint count, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_state(
        ModuleHandle module, uint index, ref rl_state_info info, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_snapshot(
        ModuleHandle module, IntPtr to, UIntPtr capacity, out UIntPtr bytes, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_restore(
        ModuleHandle module, IntPtr from, UIntPtr bytes, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_reset_state(ModuleHandle module, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_trace_start(
        ModuleHandle module, ref rl_trace_options options, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_trace_stop(ModuleHandle module, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_trace_write(
        ModuleHandle module, rl_write_fn write, IntPtr userdata, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_trace_values(
        ModuleHandle module, rl_write_fn write, IntPtr userdata, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_trace_save(
        ModuleHandle module, byte[] path, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_module_failure_report(
        ModuleHandle module, out rl_bytes_v1 report, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_llm_open(
        byte[] path, ref rl_llm_options options, out IntPtr llm, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_llm_open_memory(
        IntPtr data, UIntPtr bytes, ref rl_llm_options options, out IntPtr llm, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_llm_close(IntPtr llm, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_llm_describe(
        LanguageModelHandle llm, ref rl_llm_info info, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_llm_trace_start(
        LanguageModelHandle llm, ref rl_trace_options options, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_llm_trace_stop(LanguageModelHandle llm, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_llm_trace_write(
        LanguageModelHandle llm, rl_write_fn write, IntPtr userdata, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_llm_trace_values(
        LanguageModelHandle llm, rl_write_fn write, IntPtr userdata, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_llm_trace_save(
        LanguageModelHandle llm, byte[] path, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_llm_encode(
        LanguageModelHandle llm, rl_text_v1 text, uint flags, [Out] int[] tokens, UIntPtr capacity,
        out UIntPtr count, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_llm_decode(
        LanguageModelHandle llm, int[] tokens, UIntPtr n_tokens, uint flags, [Out] byte[] text,
        UIntPtr capacity, out UIntPtr count, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_llm_encode_chat(
        LanguageModelHandle llm, rl_text_v1 json, [Out] int[] tokens, UIntPtr capacity,
        out UIntPtr count, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_grammar_from_regex(
        LanguageModelHandle llm, rl_text_v1 pattern, out IntPtr grammar, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_grammar_from_json_schema(
        LanguageModelHandle llm, rl_text_v1 schema, out IntPtr grammar, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_grammar_close(IntPtr grammar, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_adapter_open(
        LanguageModelHandle llm, byte[] path, out IntPtr adapter, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_adapter_close(IntPtr adapter, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_llm_default_options(
        LanguageModelHandle llm, ref rl_generate_options options, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_llm_generate(
        LanguageModelHandle llm, int[] prompt, UIntPtr n_prompt, ref rl_generate_options options,
        rl_piece_fn write, IntPtr userdata, ref rl_statistics statistics, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_llm_embed(
        LanguageModelHandle llm, rl_text_v1[] texts, uint n_texts, uint normalizes, uint truncates,
        [Out] float[] vectors, UIntPtr capacity, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_session_open(
        LanguageModelHandle llm, out IntPtr session, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_session_restore(
        LanguageModelHandle llm, byte[] path, IntPtr adapter, out IntPtr session,
        ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_session_close(IntPtr session, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_session_generate(
        SessionHandle session, int[] prompt, UIntPtr n_prompt, ref rl_generate_options options,
        rl_piece_fn write, IntPtr userdata, ref rl_statistics statistics, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_session_cancel(SessionHandle session, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_session_fork(
        SessionHandle session, out IntPtr copy, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_session_rewind(
        SessionHandle session, UIntPtr count, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_session_set_tokens(
        SessionHandle session, int[] tokens, UIntPtr n_tokens, ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_session_tokens(
        SessionHandle session, [Out] int[] tokens, UIntPtr capacity, out UIntPtr count,
        ref rl_error error);

    [DllImport(Library, CallingConvention = CallingConvention.Cdecl)]
    internal static extern int rl_session_save(
        SessionHandle session, byte[] path, ref rl_error error);
  }
}
