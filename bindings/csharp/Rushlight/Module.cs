// Programs: modules, their runs, state and traces.
using System;
using System.Collections.Generic;
using System.IO;
using System.Threading;

namespace Rushlight {
  /// <summary>A program that is open. One thread at a time may use it, except for Cancel() and
  /// Dispose(); Clone() makes another for another thread.</summary>
  public sealed class Module : IDisposable {
    private readonly ModuleHandle handle;

    private Module(IntPtr number, PinnedProgram program) {
      handle = new ModuleHandle(number, program);
    }

    /// <summary>The release of the library, such as "0.1.0".</summary>
    public static string Version => Call.Constant(Native.rl_version());

    /// <summary>Opens a program (.pte), or the program in a bundled one (.bpte).</summary>
    public static Module Open(string path, ModuleOptions options = null) {
      byte[] name = Call.Required(nameof(path), path);
      using (var pins = new Pins()) {
        rl_module_options lent = (options ?? new ModuleOptions()).Lend(pins);
        IntPtr number = IntPtr.Zero;
        Call.Check((ref rl_error error) =>
            Native.rl_module_open(name, ref lent, out number, ref error));
        return new Module(number, null);
      }
    }

    /// <summary>Opens a program in memory, which the module does not copy: it must stay as it is
    /// until the module and its clones are closed.</summary>
    public static Module Open(byte[] program, ModuleOptions options = null) {
      if (program == null) throw new ArgumentNullException(nameof(program));
      var pinned = new PinnedProgram(program);
      pinned.Retain();
      try {
        using (var pins = new Pins()) {
          rl_module_options lent = (options ?? new ModuleOptions()).Lend(pins);
          IntPtr number = IntPtr.Zero;
          var bytes = (UIntPtr)(uint)program.Length;
          Call.Check((ref rl_error error) => Native.rl_module_open_memory(
              pinned.Address, bytes, ref lent, out number, ref error));
          return new Module(number, pinned);
        }
      } finally {
        pinned.Release();
      }
    }

    /// <summary>Closes it, once a call that another thread is in has returned.</summary>
    public void Dispose() {
      handle.Dispose();
    }

    /// <summary>Calls a function of the library with this module.</summary>
    private void Check(NativeCall call) {
      if (handle.IsClosed) throw new ObjectDisposedException("Rushlight.Module");
      Call.Check(call);
    }

    /// <summary>A module on the same program with memory and state of its own, for another
    /// thread.</summary>
    public Module Clone() {
      IntPtr copy = IntPtr.Zero;
      Check((ref rl_error error) => Native.rl_module_clone(handle, out copy, ref error));
      return new Module(copy, handle.Program);
    }

    /// <summary>A clone with the same methods loaded, and with the current state and
    /// seed.</summary>
    public Module Fork() {
      IntPtr copy = IntPtr.Zero;
      Check((ref rl_error error) => Native.rl_module_fork(handle, out copy, ref error));
      return new Module(copy, handle.Program);
    }

    // ---- what it is ----

    /// <summary>The names of the methods.</summary>
    public IList<string> Methods() {
      var info = new rl_module_info { size = Call.SizeOf<rl_module_info>() };
      Check((ref rl_error error) => Native.rl_module_describe(handle, ref info, ref error));
      var names = new List<string>();
      for (uint i = 0; i < info.n_methods; i++) {
        uint index = i;
        var name = new rl_text_v1();
        Check((ref rl_error error) =>
            Native.rl_module_method_name(handle, index, out name, ref error));
        names.Add(Call.Copy(name));
      }
      return names;
    }

    /// <summary>Bytes of the methods that are loaded.</summary>
    public ulong MemoryInUse() {
      var info = new rl_module_info { size = Call.SizeOf<rl_module_info>() };
      Check((ref rl_error error) => Native.rl_module_describe(handle, ref info, ref error));
      return info.memory_in_use;
    }

    /// <summary>What a method is, and the memory that it takes.</summary>
    public MethodInfo Method(string method) =>
        new MethodInfo(Describe(Call.Required(nameof(method), method)));

    private rl_method_info Describe(byte[] method) {
      var info = new rl_method_info { size = Call.SizeOf<rl_method_info>() };
      Check((ref rl_error error) =>
          Native.rl_module_describe_method(handle, method, ref info, ref error));
      return info;
    }

    /// <summary>The inputs of a method.</summary>
    public IList<ValueInfo> Inputs(string method) {
      byte[] name = Call.Required(nameof(method), method);
      return Describe(Describe(name).n_inputs, (uint index, ref rl_value_info info,
                                                ref rl_error error) =>
          Native.rl_module_describe_input(handle, name, index, ref info, ref error));
    }

    /// <summary>The outputs of a method.</summary>
    public IList<ValueInfo> Outputs(string method) {
      byte[] name = Call.Required(nameof(method), method);
      return Describe(Describe(name).n_outputs, (uint index, ref rl_value_info info,
                                                 ref rl_error error) =>
          Native.rl_module_describe_output(handle, name, index, ref info, ref error));
    }

    private delegate int Describing(uint index, ref rl_value_info info, ref rl_error error);

    private IList<ValueInfo> Describe(uint count, Describing describe) {
      var infos = new List<ValueInfo>();
      for (uint i = 0; i < count; i++) {
        uint index = i;
        var info = new rl_value_info { size = Call.SizeOf<rl_value_info>() };
        Check((ref rl_error error) => describe(index, ref info, ref error));
        infos.Add(new ValueInfo(info));
      }
      return infos;
    }

    /// <summary>What the inputs of a method have to do with each other, such as "size 0 of input 'y'
    /// == size 0 of input 'x'"; a run that does not keep to it is refused.</summary>
    public IList<string> Relations(string method) {
      byte[] name = Call.Required(nameof(method), method);
      uint count = 0;
      Check((ref rl_error error) =>
          Native.rl_module_relation_count(handle, name, out count, ref error));
      var relations = new List<string>();
      for (uint i = 0; i < count; i++) {
        uint index = i;
        var text = new rl_text_v1();
        Check((ref rl_error error) =>
            Native.rl_module_relation(handle, name, index, out text, ref error));
        relations.Add(Call.Copy(text));
      }
      return relations;
    }

    // ---- running ----

    /// <summary>Loads a method, which otherwise its first run does.</summary>
    public void Load(string method) {
      byte[] name = Call.Required(nameof(method), method);
      Check((ref rl_error error) => Native.rl_module_load(handle, name, ref error));
    }

    /// <summary>Frees a method, its memory and its own state.</summary>
    public void Unload(string method) {
      byte[] name = Call.Required(nameof(method), method);
      Check((ref rl_error error) => Native.rl_module_unload(handle, name, ref error));
    }

    /// <summary>Runs a method. Inputs are of Tensor, long or int, double or float, bool, string, or
    /// null; so are the outputs, whose memory is their own.</summary>
    public IList<object> Run(string method, params object[] inputs) =>
        RunInto(method, inputs, null);

    /// <summary>The same, and another thread may end it by a token.</summary>
    public IList<object> Run(string method, object[] inputs, CancellationToken token) =>
        RunInto(method, inputs, null, token);

    /// <summary>Runs a method whose outputs are written into arrays of the caller: `outputs` has a
    /// tensor, whose array has room for the result, or null for each of the first outputs. What
    /// comes back for it shares the array, and has the sizes of the result.</summary>
    public IList<object> RunInto(string method, object[] inputs, Tensor[] outputs,
                                 CancellationToken token = default(CancellationToken)) {
      byte[] name = Call.Required(nameof(method), method);
      if (inputs == null) throw new ArgumentNullException(nameof(inputs));
      Tensor[] into = outputs ?? new Tensor[0];
      uint count = Describe(name).n_outputs;
      if (into.Length > count) {
        throw Call.Wrong(method + ": memory for " + into.Length + " outputs: it has " + count);
      }
      using (var pins = new Pins()) {
        var values = new rl_value_v1[inputs.Length];
        for (int i = 0; i < values.Length; i++) values[i] = ValueOf(inputs[i], i, pins);
        var results = new rl_value_v1[count];
        for (int i = 0; i < results.Length; i++) results[i].size = Call.SizeOf<rl_value_v1>();
        int set = 0;
        try {
          for (; set < into.Length; set++) SetOutput(method, name, set, into[set], pins);
          RunUntil(token, (ref rl_error error) => Native.rl_module_run(
              handle, name, values, (uint)values.Length, results, count, ref error));
          return Wrap(results, into);
        } finally {
          // The arrays may move again, whatever happened.
          for (int i = 0; i < set; i++) {
            if (into[i] != null) TakeBack(name, (uint)i);
          }
        }
      }
    }

    private static IList<object> Wrap(rl_value_v1[] results, Tensor[] into) {
      var made = new object[results.Length];
      for (int i = 0; i < made.Length; i++) {
        made[i] = i < into.Length && into[i] != null ? into[i].WithSizesOf(results[i])
                                                     : ObjectOf(results[i]);
      }
      return made;
    }

    private void SetOutput(string method, byte[] name, int index, Tensor tensor, Pins pins) {
      if (tensor == null) return;
      var info = new rl_value_info { size = Call.SizeOf<rl_value_info>() };
      Check((ref rl_error error) =>
          Native.rl_module_describe_output(handle, name, (uint)index, ref info, ref error));
      if (info.kind == Native.Tensor && info.dtype != (int)tensor.DType) {
        throw Call.Wrong(method + ": output " + index + " is " + (DType)info.dtype
                         + ", its memory has " + tensor.DType);
      }
      IntPtr data = pins.Add(tensor.Data);
      var bytes = (UIntPtr)(uint)Buffer.ByteLength(tensor.Data);
      Check((ref rl_error error) =>
          Native.rl_module_set_output(handle, name, (uint)index, data, bytes, ref error));
    }

    private void TakeBack(byte[] name, uint index) {
      try {
        Check((ref rl_error error) => Native.rl_module_set_output(
            handle, name, index, IntPtr.Zero, UIntPtr.Zero, ref error));
      } catch (RushlightException) {
        // Without the method nothing writes there.
        Check((ref rl_error error) => Native.rl_module_unload(handle, name, ref error));
      }
    }

    private static rl_value_v1 ValueOf(object input, int index, Pins pins) {
      var value = new rl_value_v1 { size = Call.SizeOf<rl_value_v1>() };
      if (input == null) return value;
      if (input is Tensor tensor) return tensor.Value(pins);
      if (input is string text) {
        value.kind = Native.String;
        value.text = pins.AddText(text);
      } else if (input is bool flag) {
        value.kind = Native.Bool;
        value.i = flag ? 1 : 0;
      } else if (input is double || input is float) {
        value.kind = Native.Double;
        value.d = Convert.ToDouble(input);
      } else if (input is long || input is int) {
        value.kind = Native.Int;
        value.i = Convert.ToInt64(input);
      } else {
        throw Call.Wrong("input " + index + " is a " + input.GetType().Name
                         + ": give a Tensor, a number, a bool, a string or null");
      }
      return value;
    }

    private static object ObjectOf(rl_value_v1 value) {
      switch (value.kind) {
        case Native.Tensor:
          return Tensor.Copy(value);
        case Native.String:
          return Call.Copy(value.text);
        case Native.Double:
          return value.d;
        case Native.Int:
          return value.i;
        case Native.Bool:
          return value.i != 0;
        default:
          return null;  // None, or a list, which has no values here
      }
    }

    /// <summary>Runs `run`, which a token may end: then an OperationCanceledException.</summary>
    private void RunUntil(CancellationToken token, NativeCall run) {
      token.ThrowIfCancellationRequested();
      if (!token.CanBeCanceled) {
        Check(run);
        return;
      }
      var gate = new object();
      bool isOver = false;
      // A call before the run has begun does nothing: it is repeated until the run has ended.
      WaitCallback end = _ => {
        while (true) {
          lock (gate) {
            if (isOver) return;
            Cancel();
          }
          Thread.Sleep(1);
        }
      };
      using (token.Register(() => ThreadPool.QueueUserWorkItem(end))) {
        try {
          Check(run);
        } catch (RushlightException error)
            when (error.Code == ErrorCode.Cancelled && token.IsCancellationRequested) {
          throw new OperationCanceledException(error.Message, error, token);
        } finally {
          lock (gate) isOver = true;
        }
      }
    }

    /// <summary>Ends the run that another thread is in; it fails with Cancelled. Does nothing if
    /// there is none.</summary>
    public void Cancel() {
      Check((ref rl_error error) => Native.rl_module_cancel(handle, ref error));
    }

    /// <summary>Random operators draw as after torch.manual_seed(seed).</summary>
    public void Seed(ulong seed) {
      Check((ref rl_error error) => Native.rl_module_seed(handle, seed, ref error));
    }

    // ---- state ----

    /// <summary>The state of the methods that are loaded.</summary>
    public IList<StateInfo> States() {
      uint count = 0;
      Check((ref rl_error error) => Native.rl_module_state_count(handle, out count, ref error));
      var states = new List<StateInfo>();
      for (uint i = 0; i < count; i++) {
        uint index = i;
        var info = new rl_state_info { size = Call.SizeOf<rl_state_info>() };
        Check((ref rl_error error) => Native.rl_module_state(handle, index, ref info, ref error));
        states.Add(new StateInfo(info, Tensor.Copy(info)));
      }
      return states;
    }

    /// <summary>All state and the seed's place as bytes, for Restore().</summary>
    public byte[] Snapshot() {
      UIntPtr bytes = UIntPtr.Zero;
      Check((ref rl_error error) => Native.rl_module_snapshot(
          handle, IntPtr.Zero, UIntPtr.Zero, out bytes, ref error));
      var snapshot = new byte[checked((int)bytes.ToUInt64())];
      using (var pins = new Pins()) {
        IntPtr to = pins.Add(snapshot);
        Check((ref rl_error error) =>
            Native.rl_module_snapshot(handle, to, bytes, out bytes, ref error));
      }
      return snapshot;
    }

    /// <summary>Puts back the state of a snapshot, of this module or of another one of the same
    /// program with the same methods loaded.</summary>
    public void Restore(byte[] snapshot) {
      if (snapshot == null) throw new ArgumentNullException(nameof(snapshot));
      using (var pins = new Pins()) {
        IntPtr from = pins.Add(snapshot);
        var bytes = (UIntPtr)(uint)snapshot.Length;
        Check((ref rl_error error) => Native.rl_module_restore(handle, from, bytes, ref error));
      }
    }

    /// <summary>The state has its initial content again.</summary>
    public void ResetState() {
      Check((ref rl_error error) => Native.rl_module_reset_state(handle, ref error));
    }

    // ---- traces and failures ----

    /// <summary>Records loads and runs from now on, and forgets what was recorded. `bytes`: room for
    /// events, some 80 for each, 0: 1 MiB; `valueBytes`: room for values, 0: 16 MiB if there are
    /// any.</summary>
    public void TraceStart(TraceValues values = TraceValues.None, ulong bytes = 0,
                           ulong valueBytes = 0) {
      rl_trace_options options = Tracing.Options(values, bytes, valueBytes);
      Check((ref rl_error error) => Native.rl_module_trace_start(handle, ref options, ref error));
    }

    /// <summary>Records no more, and keeps what was recorded.</summary>
    public void TraceStop() {
      Check((ref rl_error error) => Native.rl_module_trace_stop(handle, ref error));
    }

    /// <summary>Writes the trace (ETDump) to a file, and values to one with ".values" at its
    /// end.</summary>
    public void TraceSave(string path) {
      byte[] name = Call.Required(nameof(path), path);
      Check((ref rl_error error) => Native.rl_module_trace_save(handle, name, ref error));
    }

    /// <summary>Writes the trace (ETDump). What the stream throws comes out of this.</summary>
    public void TraceWrite(Stream to) {
      Tracing.Write(to, Check, (rl_write_fn write, ref rl_error error) =>
          Native.rl_module_trace_write(handle, write, IntPtr.Zero, ref error));
    }

    /// <summary>Writes the values that the trace refers to (the debug buffer).</summary>
    public void TraceWriteValues(Stream to) {
      Tracing.Write(to, Check, (rl_write_fn write, ref rl_error error) =>
          Native.rl_module_trace_values(handle, write, IntPtr.Zero, ref error));
    }

    /// <summary>The report of the last load, input or run that failed, for `rushlight explain`; null
    /// if nothing did. InvalidState unless ModuleOptions.ReportsFailures.</summary>
    public byte[] FailureReport() {
      var report = new rl_bytes_v1();
      Check((ref rl_error error) =>
          Native.rl_module_failure_report(handle, out report, ref error));
      return report.size == UIntPtr.Zero ? null : Call.Copy(report.data, report.size);
    }
  }
}
