// What a program says of itself, and how it is opened.
using System;

namespace Rushlight {
  /// <summary>What an input or an output is.</summary>
  public enum ValueKind { None, Tensor, Text, Double, Int, Bool, List }

  /// <summary>An input or an output of a method, as the program describes it.</summary>
  public sealed class ValueInfo {
    /// <summary>Of an input, such as "x"; empty if the program has none.</summary>
    public string Name { get; }

    public ValueKind Kind { get; }

    /// <summary>Of a tensor; otherwise null.</summary>
    public DType? DType { get; }

    /// <summary>The least sizes of a tensor.</summary>
    public int[] MinSizes { get; }

    /// <summary>The greatest sizes of a tensor; int.MaxValue: no bound.</summary>
    public int[] MaxSizes { get; }

    /// <summary>Sizes of one number, from 1 on, are equal in a call; 0: it is not tied to
    /// others.</summary>
    public uint[] Symbols { get; }

    /// <summary>Of a scalar: whether it must be what it was at export.</summary>
    public bool IsFixed { get; }

    internal ValueInfo(rl_value_info info) {
      Name = Call.Copy(info.name);
      Kind = info.kind <= Native.Bool ? (ValueKind)info.kind : ValueKind.List;
      if (Kind == ValueKind.Tensor) DType = (DType)info.dtype;
      MinSizes = Head(info.min_sizes, info.rank);
      MaxSizes = Head(info.max_sizes, info.rank);
      Symbols = Head(info.symbols, info.rank);
      IsFixed = info.is_fixed != 0;
    }

    private static T[] Head<T>(T[] all, uint count) {
      var head = new T[Math.Min(count, all.Length)];
      Array.Copy(all, head, head.Length);
      return head;
    }
  }

  /// <summary>What a method is, and the bytes that it takes, or would take.</summary>
  public sealed class MethodInfo {
    public string Name { get; }
    public bool IsLoaded { get; }
    public int Inputs { get; }
    public int Outputs { get; }
    public ulong Arenas { get; }
    public ulong SharedArenas { get; }
    public ulong Structures { get; }
    public ulong OutputBytes { get; }
    public ulong Scratch { get; }
    public ulong Instructions { get; }

    internal MethodInfo(rl_method_info info) {
      Name = Call.Copy(info.name);
      IsLoaded = info.is_loaded != 0;
      Inputs = (int)info.n_inputs;
      Outputs = (int)info.n_outputs;
      Arenas = info.arenas;
      SharedArenas = info.shared_arenas;
      Structures = info.structures;
      OutputBytes = info.outputs;
      Scratch = info.scratch;
      Instructions = info.instructions;
    }
  }

  /// <summary>A buffer that a method writes, which keeps its content from one run to the
  /// next.</summary>
  public sealed class StateInfo {
    public string Name { get; }

    /// <summary>The first loaded method that has it.</summary>
    public string Method { get; }

    /// <summary>A copy of its content.</summary>
    public Tensor Content { get; }

    internal StateInfo(rl_state_info info, Tensor content) {
      Name = Call.Copy(info.name);
      Method = Call.Copy(info.method);
      Content = content;
    }
  }

  /// <summary>How a program is opened.</summary>
  public sealed class ModuleOptions {
    /// <summary>Threads for kernels, the caller's among them; 0: one for each core.</summary>
    public uint Threads;

    /// <summary>Bytes for methods; 0: no limit.</summary>
    public ulong MemoryLimit;

    /// <summary>Bytes of scratch for each method; 0: 1 MiB.</summary>
    public ulong ScratchBytes;

    /// <summary>Instructions of a run; 0: 10,000,000.</summary>
    public ulong MaxInstructions;

    /// <summary>The .ptd that belongs to the program.</summary>
    public string DataPath;

    /// <summary>Shared libraries with kernels of operators of your own.</summary>
    public string[] KernelLibraries;

    /// <summary>Shared libraries with backends.</summary>
    public string[] BackendLibraries;

    /// <summary>The file is read, not mapped, and may be written meanwhile.</summary>
    public bool ReadsFile;

    /// <summary>Each use asks whether the file has changed: AccessFailed.</summary>
    public bool GuardsFile;

    /// <summary>Module.FailureReport() has what failed.</summary>
    public bool ReportsFailures;

    internal rl_module_options Lend(Pins pins) {
      return new rl_module_options {
        size = Call.SizeOf<rl_module_options>(),
        threads = Threads,
        memory_limit = MemoryLimit,
        scratch_bytes = ScratchBytes,
        max_instructions = MaxInstructions,
        data_path = pins.Add(Call.Text("DataPath", DataPath)),
        kernel_libraries = pins.AddPaths("KernelLibraries", KernelLibraries),
        n_kernel_libraries = (uint)(KernelLibraries?.Length ?? 0),
        backend_libraries = pins.AddPaths("BackendLibraries", BackendLibraries),
        n_backend_libraries = (uint)(BackendLibraries?.Length ?? 0),
        reads_file = ReadsFile ? 1u : 0u,
        guards_file = GuardsFile ? 1u : 0u,
        reports_failures = ReportsFailures ? 1u : 0u
      };
    }
  }
}
