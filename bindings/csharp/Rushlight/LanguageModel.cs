// Language models, and what is made of them.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Threading;

namespace Rushlight {
  /// <summary>The type of the keys and values that a model keeps.</summary>
  public enum Cache { Automatic = 0, Float32 = 1, Float16 = 2, Int8 = 3 }

  /// <summary>How a language model is opened.</summary>
  public sealed class LanguageModelOptions {
    /// <summary>Threads for kernels, the caller's among them; 0: one for each core.</summary>
    public uint Threads;

    /// <summary>Bytes without the cache; 0: no limit.</summary>
    public ulong MemoryLimit;

    /// <summary>The .ptd that belongs to the program.</summary>
    public string DataPath;

    /// <summary>The file is read, not mapped, and may be written meanwhile.</summary>
    public bool ReadsFile;

    /// <summary>Each use asks whether the file has changed.</summary>
    public bool GuardsFile;

    /// <summary>The type of keys and values.</summary>
    public Cache Cache;

    /// <summary>Texts that are computed at once; 0: 32.</summary>
    public uint MaxTexts;

    /// <summary>Bytes of the cache; 0: four texts as long as the context.</summary>
    public ulong CacheLimit;

    /// <summary>Rows of prompts that are computed together with tokens of other texts; 0:
    /// 128.</summary>
    public ulong PrefillRows;

    /// <summary>In place of the program's.</summary>
    public string ChatTemplate;

    /// <summary>Shared libraries with kernels of operators of your own.</summary>
    public string[] KernelLibraries;

    /// <summary>Shared libraries with backends.</summary>
    public string[] BackendLibraries;

    internal rl_llm_options Lend(Pins pins) {
      return new rl_llm_options {
        size = Call.SizeOf<rl_llm_options>(),
        threads = Threads,
        memory_limit = MemoryLimit,
        data_path = pins.Add(Call.Text("DataPath", DataPath)),
        reads_file = ReadsFile ? 1u : 0u,
        guards_file = GuardsFile ? 1u : 0u,
        cache = (uint)Cache,
        max_texts = MaxTexts,
        cache_limit = CacheLimit,
        prefill_rows = PrefillRows,
        chat_template = pins.Add(Call.Text("ChatTemplate", ChatTemplate)),
        backend_libraries = pins.AddPaths("BackendLibraries", BackendLibraries),
        n_backend_libraries = (uint)(BackendLibraries?.Length ?? 0),
        kernel_libraries = pins.AddPaths("KernelLibraries", KernelLibraries),
        n_kernel_libraries = (uint)(KernelLibraries?.Length ?? 0)
      };
    }
  }

  /// <summary>What a language model is.</summary>
  public sealed class LanguageModelInfo {
    /// <summary>Tokens that there are.</summary>
    public ulong Vocabulary { get; }

    /// <summary>Positions of a text.</summary>
    public ulong Context { get; }

    /// <summary>Elements of an embedding; 0: it makes none.</summary>
    public ulong Hidden { get; }

    /// <summary>Bytes of the cache that are taken now.</summary>
    public ulong CacheBytes { get; }

    public ulong CacheLimit { get; }
    public bool HasTokenizer { get; }
    public bool HasChatTemplate { get; }

    internal LanguageModelInfo(rl_llm_info info) {
      Vocabulary = info.vocabulary;
      Context = info.context;
      Hidden = info.hidden;
      CacheBytes = info.cache_bytes;
      CacheLimit = info.cache_limit;
      HasTokenizer = info.has_tokenizer != 0;
      HasChatTemplate = info.has_chat_template != 0;
    }
  }

  /// <summary>A language model. Any number of threads may use it at once, and their texts are
  /// computed together. Its sessions, grammars and adapters stay when it is closed.</summary>
  public sealed class LanguageModel : IDisposable {
    private readonly LanguageModelHandle handle;

    private LanguageModel(IntPtr number, PinnedProgram program) {
      handle = new LanguageModelHandle(number, program);
    }

    /// <summary>Opens a program with a language model.</summary>
    public static LanguageModel Open(string path, LanguageModelOptions options = null) {
      byte[] name = Call.Required(nameof(path), path);
      using (var pins = new Pins()) {
        rl_llm_options lent = (options ?? new LanguageModelOptions()).Lend(pins);
        IntPtr number = IntPtr.Zero;
        Call.Check((ref rl_error error) =>
            Native.rl_llm_open(name, ref lent, out number, ref error));
        return new LanguageModel(number, null);
      }
    }

    /// <summary>Opens a program in memory, which is not copied: it must stay as it is until the
    /// model, its sessions, grammars and adapters are closed.</summary>
    public static LanguageModel Open(byte[] program, LanguageModelOptions options = null) {
      if (program == null) throw new ArgumentNullException(nameof(program));
      var pinned = new PinnedProgram(program);
      pinned.Retain();
      try {
        using (var pins = new Pins()) {
          rl_llm_options lent = (options ?? new LanguageModelOptions()).Lend(pins);
          IntPtr number = IntPtr.Zero;
          var bytes = (UIntPtr)(uint)program.Length;
          Call.Check((ref rl_error error) => Native.rl_llm_open_memory(
              pinned.Address, bytes, ref lent, out number, ref error));
          return new LanguageModel(number, pinned);
        }
      } finally {
        pinned.Release();
      }
    }

    /// <summary>Closes it, once the calls that other threads are in have returned.</summary>
    public void Dispose() {
      handle.Dispose();
    }

    private void Check(NativeCall call) {
      if (handle.IsClosed) throw new ObjectDisposedException("Rushlight.LanguageModel");
      Call.Check(call);
    }

    /// <summary>What it is.</summary>
    public LanguageModelInfo Describe() {
      var info = new rl_llm_info { size = Call.SizeOf<rl_llm_info>() };
      Check((ref rl_error error) => Native.rl_llm_describe(handle, ref info, ref error));
      return new LanguageModelInfo(info);
    }

    // ---- texts and tokens ----

    private delegate int Filling<T>(T[] items, UIntPtr capacity, out UIntPtr count,
                                    ref rl_error error);

    /// <summary>Calls a function that fills an array: once for the number of items, and once for
    /// them.</summary>
    private T[] Collect<T>(Filling<T> fill) {
      UIntPtr count = UIntPtr.Zero;
      Check((ref rl_error error) => fill(null, UIntPtr.Zero, out count, ref error));
      var items = new T[checked((int)count.ToUInt64())];
      if (items.Length > 0) {
        Check((ref rl_error error) => fill(items, count, out count, ref error));
      }
      return items;
    }

    /// <summary>The tokens of a text. `addsSpecial`: with those that surround each text;
    /// `parsesSpecial`: the texts of special tokens are read as these, which is not for texts of
    /// others.</summary>
    public int[] Encode(string text, bool addsSpecial = true, bool parsesSpecial = false) {
      if (text == null) throw new ArgumentNullException(nameof(text));
      uint flags = (addsSpecial ? Native.AddSpecial : 0) | (parsesSpecial ? Native.ParseSpecial : 0);
      using (var pins = new Pins()) {
        rl_text_v1 lent = pins.AddText(text);
        return Collect((int[] tokens, UIntPtr capacity, out UIntPtr count, ref rl_error error) =>
            Native.rl_llm_encode(handle, lent, flags, tokens, capacity, out count, ref error));
      }
    }

    /// <summary>The text of tokens.</summary>
    public string Decode(int[] tokens, bool skipsSpecial = true) {
      if (tokens == null) throw new ArgumentNullException(nameof(tokens));
      uint flags = skipsSpecial ? Native.SkipSpecial : 0;
      var n = (UIntPtr)(uint)tokens.Length;
      byte[] text = Collect((byte[] to, UIntPtr capacity, out UIntPtr count, ref rl_error error) =>
          Native.rl_llm_decode(handle, tokens, n, flags, to, capacity, out count, ref error));
      return System.Text.Encoding.UTF8.GetString(text);
    }

    /// <summary>The tokens of a conversation by the model's chat template, which end where an answer
    /// begins.</summary>
    public int[] EncodeMessages(params Message[] messages) => EncodeChat(Message.ToJson(messages));

    /// <summary>The tokens of a conversation by the model's chat template: an object of JSON with
    /// "messages", "add_generation_prompt", "tools" and what else the template reads.</summary>
    public int[] EncodeChat(string json) {
      if (json == null) throw new ArgumentNullException(nameof(json));
      using (var pins = new Pins()) {
        rl_text_v1 lent = pins.AddText(json);
        return Collect((int[] tokens, UIntPtr capacity, out UIntPtr count, ref rl_error error) =>
            Native.rl_llm_encode_chat(handle, lent, tokens, capacity, out count, ref error));
      }
    }

    // ---- generating ----

    /// <summary>What the model's makers recommend.</summary>
    public GenerateOptions DefaultOptions() {
      var options = new rl_generate_options { size = Call.SizeOf<rl_generate_options>() };
      Check((ref rl_error error) =>
          Native.rl_llm_default_options(handle, ref options, ref error));
      return new GenerateOptions(options);
    }

    /// <summary>Generates texts after a prompt, and returns when they have ended. `listener` is told
    /// of pieces on this thread, and returns false to end all texts; what it throws comes out of
    /// this. It must not generate with this model itself.</summary>
    public Statistics Generate(int[] prompt, GenerateOptions options, Func<Piece, bool> listener,
                               CancellationToken token = default(CancellationToken)) {
      if (prompt == null) throw new ArgumentNullException(nameof(prompt));
      if (options == null) throw new ArgumentNullException(nameof(options));
      var n = (UIntPtr)(uint)prompt.Length;
      return Generating.Run(
          options, listener, token, Check,
          (ref rl_generate_options lent, rl_piece_fn write, ref rl_statistics statistics,
           ref rl_error error) => Native.rl_llm_generate(handle, prompt, n, ref lent, write,
                                                         IntPtr.Zero, ref statistics, ref error));
    }

    /// <summary>The vector of each text. `normalizes`: to the length 1; `truncates`: texts beyond the
    /// context are cut, otherwise refused.</summary>
    public float[][] Embed(string[] texts, bool normalizes = true, bool truncates = false) {
      if (texts == null) throw new ArgumentNullException(nameof(texts));
      int hidden = checked((int)Describe().Hidden);
      var all = new float[checked(hidden * texts.Length)];
      using (var pins = new Pins()) {
        rl_text_v1[] lent = texts.Select(text => pins.AddText(text)).ToArray();
        Check((ref rl_error error) => Native.rl_llm_embed(
            handle, lent, (uint)lent.Length, normalizes ? 1u : 0u, truncates ? 1u : 0u, all,
            (UIntPtr)(uint)all.Length, ref error));
      }
      return texts.Select((text, i) => all.Skip(i * hidden).Take(hidden).ToArray()).ToArray();
    }

    // ---- traces ----

    /// <summary>Records steps of the model from now on, and forgets what was recorded: see
    /// Module.TraceStart(). As the functions that follow, it waits for the step that runs.</summary>
    public void TraceStart(TraceValues values = TraceValues.None, ulong bytes = 0,
                           ulong valueBytes = 0) {
      rl_trace_options options = Tracing.Options(values, bytes, valueBytes);
      Check((ref rl_error error) => Native.rl_llm_trace_start(handle, ref options, ref error));
    }

    /// <summary>Records no more, and keeps what was recorded.</summary>
    public void TraceStop() {
      Check((ref rl_error error) => Native.rl_llm_trace_stop(handle, ref error));
    }

    /// <summary>Writes the trace (ETDump) to a file, and values to one with ".values" at its
    /// end.</summary>
    public void TraceSave(string path) {
      byte[] name = Call.Required(nameof(path), path);
      Check((ref rl_error error) => Native.rl_llm_trace_save(handle, name, ref error));
    }

    /// <summary>Writes the trace (ETDump). What the stream throws comes out of this.</summary>
    public void TraceWrite(Stream to) {
      Tracing.Write(to, Check, (rl_write_fn write, ref rl_error error) =>
          Native.rl_llm_trace_write(handle, write, IntPtr.Zero, ref error));
    }

    /// <summary>Writes the values that the trace refers to (the debug buffer).</summary>
    public void TraceWriteValues(Stream to) {
      Tracing.Write(to, Check, (rl_write_fn write, ref rl_error error) =>
          Native.rl_llm_trace_values(handle, write, IntPtr.Zero, ref error));
    }

    // ---- what is made of it ----

    private delegate int Making(out IntPtr number, ref rl_error error);

    private IntPtr Make(Making make) {
      IntPtr number = IntPtr.Zero;
      Check((ref rl_error error) => make(out number, ref error));
      return number;
    }

    /// <summary>A session without tokens.</summary>
    public Session NewSession() {
      return new Session(Make((out IntPtr number, ref rl_error error) =>
          Native.rl_session_open(handle, out number, ref error)), handle.Program);
    }

    /// <summary>A session from a file of Session.Save(); `adapter` is that of the session.</summary>
    public Session Restore(string path, Adapter adapter = null) {
      byte[] name = Call.Required(nameof(path), path);
      using (var pins = new Pins()) {
        IntPtr used = pins.AddHandle(adapter?.Handle, "Adapter");
        return new Session(Make((out IntPtr number, ref rl_error error) =>
            Native.rl_session_restore(handle, name, used, out number, ref error)), handle.Program);
      }
    }

    /// <summary>Texts that match a regular expression.</summary>
    public Grammar GrammarFromRegex(string pattern) {
      if (pattern == null) throw new ArgumentNullException(nameof(pattern));
      using (var pins = new Pins()) {
        rl_text_v1 lent = pins.AddText(pattern);
        return new Grammar(Make((out IntPtr number, ref rl_error error) =>
            Native.rl_grammar_from_regex(handle, lent, out number, ref error)), handle.Program);
      }
    }

    /// <summary>Texts of JSON that a schema accepts.</summary>
    public Grammar GrammarFromJsonSchema(string schema) {
      if (schema == null) throw new ArgumentNullException(nameof(schema));
      using (var pins = new Pins()) {
        rl_text_v1 lent = pins.AddText(schema);
        return new Grammar(Make((out IntPtr number, ref rl_error error) =>
            Native.rl_grammar_from_json_schema(handle, lent, out number, ref error)),
                           handle.Program);
      }
    }

    /// <summary>An adapter (LoRA) of the model.</summary>
    public Adapter OpenAdapter(string path) {
      byte[] name = Call.Required(nameof(path), path);
      return new Adapter(Make((out IntPtr number, ref rl_error error) =>
          Native.rl_adapter_open(handle, name, out number, ref error)), handle.Program);
    }
  }

  /// <summary>What a text may be: it matches a regular expression, or is JSON that a schema
  /// accepts.</summary>
  public sealed class Grammar : IDisposable {
    internal readonly GrammarHandle Handle;

    internal Grammar(IntPtr number, PinnedProgram program) {
      Handle = new GrammarHandle(number, program);
    }

    public void Dispose() {
      Handle.Dispose();
    }
  }

  /// <summary>An adapter (LoRA) of a model.</summary>
  public sealed class Adapter : IDisposable {
    internal readonly AdapterHandle Handle;

    internal Adapter(IntPtr number, PinnedProgram program) {
      Handle = new AdapterHandle(number, program);
    }

    public void Dispose() {
      Handle.Dispose();
    }
  }
}
