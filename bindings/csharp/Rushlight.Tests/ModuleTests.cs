// Modules give the bits that they give in Python, and refuse what does not fit.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Threading;

namespace Rushlight.Tests {
  internal static class ModuleTests {
    private static string File(string name) => Path.Combine(Program.Data, name);

    private static Tensor X(int batch) =>
        Tensor.Of(Program.Numbers<float>("x_" + batch + ".bin"), batch, 6);

    private static Tensor Mask(int batch) =>
        Tensor.Of(Program.Numbers<float>("mask_" + batch + ".bin"), batch);

    public static void OutputsAreThoseOfPython() {
      Program.Check(Module.Version.Length > 0, "version");
      foreach (string backend in new[] { "portable", "cpu", "xnnpack" }) {
        var options = new ModuleOptions { Threads = 2 };
        using (Module module = Module.Open(File("net_" + backend + ".pte"), options)) {
          foreach (int batch in new[] { 2, 9, 4, 2 }) {
            IList<object> outputs = module.Run("forward", X(batch), Mask(batch));
            Program.Check(outputs.Count == 4, "outputs");
            for (int i = 0; i < 4; i++) {
              string name = backend + "_" + batch + "_" + i + ".bin";
              Program.Equal(((Tensor)outputs[i]).ToBytes(), Program.Bytes(name), name);
            }
            var flags = (Tensor)outputs[2];
            Program.Check(flags.DType == DType.Bool, "the dtype of flags");
            Program.Check(flags.ToBools().Length == flags.Count, "flags");
            Program.Check(((Tensor)outputs[1]).ToArray<long>().Length == batch, "indices");
          }
        }
      }
    }

    public static void OutputsThatAreNotRowMajor() {
      using (Module module = Module.Open(File("image.pte"))) {
        float[] x = Enumerable.Range(0, 24).Select(i => (float)i).ToArray();
        float[] doubled = x.Select(v => v * 2).ToArray();
        Tensor input = Tensor.Of(x, 1, 2, 3, 4);
        var y = (Tensor)module.Run("forward", input)[0];
        Program.Equal(y.ToArray<float>(), doubled, "copied");
        var memory = new float[30];
        var into = new[] { Tensor.Of(memory, 30) };
        y = (Tensor)module.RunInto("forward", new object[] { input }, into)[0];
        Program.Equal(memory.Take(24).ToArray(), doubled, "in place");
        Program.Equal(y.Sizes, new[] { 1, 2, 3, 4 }, "sizes");
      }
    }

    public static void TensorsAreChecked() {
      var six = new float[6];
      Program.Fails(ErrorCode.InvalidArgument, "have 32", () => Tensor.Of(six, 2, 4));
      Program.Fails(ErrorCode.InvalidArgument, "-2 is negative", () => Tensor.Of(six, -2, -3));
      Program.Fails(ErrorCode.InvalidArgument, "17 dimensions",
                    () => Tensor.Of(six, Enumerable.Repeat(1, 17).ToArray()));
      Program.Fails(ErrorCode.InvalidArgument, "no array has",
                    () => Tensor.Zeros(DType.Int8, int.MaxValue, 3));
      Program.Fails(ErrorCode.InvalidArgument, "no dtype is one",
                    () => Tensor.Of(new DateTime[1], 1));
      Program.Fails(ErrorCode.InvalidArgument, "give one of bytes",
                    () => Tensor.Wrap(DType.Float16, six, 6));
      Program.Fails(ErrorCode.InvalidArgument, "its elements are no Int32",
                    () => Tensor.Of(six, 6).ToArray<int>());
      Program.Check(Tensor.Zeros(DType.Float16, 2, 3).ToBytes().Length == 12, "bytes of float16");
      Program.Check(Tensor.Zeros(DType.Float32, 0, 3).Count == 0, "empty");
      Program.Equal(Tensor.Of(new[] { true, false }, 2).ToBytes(), new byte[] { 1, 0 }, "bools");
      Program.Check(Tensor.Of(six, 2, 3).ToString() == "Float32[2, 3]", "as text");
    }

    public static void Descriptions() {
      using (Module module = Module.Open(File("net_portable.pte"))) {
        Program.Equal(module.Methods().ToArray(), new[] { "forward" }, "methods");
        IList<ValueInfo> inputs = module.Inputs("forward");
        ValueInfo x = inputs[0], mask = inputs[1];
        Program.Check(x.Name == "x" && mask.Name == "mask", "names");
        Program.Check(x.Kind == ValueKind.Tensor && x.DType == DType.Float32, "kind");
        Program.Equal(x.MinSizes, new[] { 2, 6 }, "least");
        Program.Equal(x.MaxSizes, new[] { 9, 6 }, "greatest");
        Program.Check(x.Symbols[0] == mask.Symbols[0] && x.Symbols[0] != 0, "equal sizes");
        Program.Check(module.Relations("forward").Any(r => r.Contains("'x'") && r.Contains("'mask'")),
                      string.Join(", ", module.Relations("forward")));
        Program.Equal(module.Outputs("forward").Select(o => o.DType.Value).ToArray(),
                      new[] { DType.Float32, DType.Int64, DType.Bool, DType.Float16 }, "dtypes");
        MethodInfo method = module.Method("forward");
        Program.Check(method.Inputs == 2 && method.Outputs == 4 && !method.IsLoaded, "method");
        Program.Fails(ErrorCode.InvalidArgument, "backward", () => module.Inputs("backward"));
        Program.Fails(ErrorCode.InvalidArgument, "na\u00efve", () => module.Method("na\u00efve"));
        Program.Fails(ErrorCode.InvalidArgument, "a NUL", () => module.Method("for\0ward"));
      }
    }

    public static void WrongInputsAreRefused() {
      using (Module module = Module.Open(File("net_portable.pte"))) {
        Tensor x = X(4), mask = Mask(4);
        foreach (var wrong in new[] {
                   Tuple.Create(Tensor.Zeros(DType.Float32, 10, 6), mask, "size 0 is 10"),
                   Tuple.Create(x, Mask(2), "'mask': size 0 is 2"),
                   Tuple.Create(Tensor.Zeros(DType.Float32, 6), mask, "got 1 dimensions"),
                   Tuple.Create(Tensor.Zeros(DType.Float64, 4, 6), mask, "got float64")
                 }) {
          Program.Throws<RushlightException>(
              wrong.Item3, () => module.Run("forward", wrong.Item1, wrong.Item2));
        }
        Program.Fails(ErrorCode.InvalidArgument, "got an Int",
                      () => module.Run("forward", 3, mask));
        Program.Fails(ErrorCode.InvalidArgument, "input 0 is a Guid",
                      () => module.Run("forward", Guid.Empty, mask));
        Program.Fails(ErrorCode.InvalidArgument, "got 1 inputs", () => module.Run("forward", x));
        Program.Check(module.Run("forward", x, mask).Count == 4, "it runs again");
      }
      using (Module module = Module.Open(File("scaled.pte"))) {
        Tensor ones = Tensor.Of(new float[] { 1, 1, 1 }, 3);
        var y = (Tensor)module.Run("forward", ones, 2, true, "up")[0];
        Program.Equal(y.ToArray<float>(), new float[] { 2, 2, 2 }, "scalars");
        Program.Fails(ErrorCode.InvalidArgument, "exported with another value",
                      () => module.Run("forward", ones, 2L, false, "up"));
      }
    }

    public static void FilesThatAreNoPrograms() {
      Program.Fails(ErrorCode.AccessFailed, "no such file", () => Module.Open("no/file.pte"));
      Program.Throws<ArgumentNullException>("path", () => Module.Open((string)null));
      byte[] whole = Program.Bytes("net_cpu.pte");
      foreach (int length in new[] { 0, 1, 8, 100, whole.Length / 2, whole.Length - 1 }) {
        Program.Throws<RushlightException>("", () => Module.Open(whole.Take(length).ToArray()));
      }
      for (int at = 0; at < whole.Length; at += whole.Length / 64) {
        var damaged = (byte[])whole.Clone();
        damaged[at] ^= 0x55;
        try {  // it is refused, or runs: it does not crash
          using (Module module = Module.Open(damaged)) module.Run("forward", X(4), Mask(4));
        } catch (RushlightException) {
        }
      }
    }

    public static void ProgramsInMemory() {
      Module module = Module.Open(Program.Bytes("net_cpu.pte"));
      Module copy = module.Clone();
      module.Dispose();
      GC.Collect();
      GC.WaitForPendingFinalizers();
      Program.Equal(((Tensor)copy.Run("forward", X(9), Mask(9))[0]).ToBytes(),
                    Program.Bytes("cpu_9_0.bin"), "the clone keeps the memory");
      copy.Dispose();
    }

    public static void OutputsInMemoryOfTheCaller() {
      foreach (string backend in new[] { "portable", "cpu" }) {
        using (Module module = Module.Open(File("net_" + backend + ".pte"))) {
          var inputs = new object[] { X(4), Mask(4) };
          float[] wanted = Program.Numbers<float>(backend + "_4_0.bin"), memory = new float[45];
          var into = new[] { Tensor.Of(memory, 9, 5), null };
          IList<object> outputs = module.RunInto("forward", inputs, into);
          var y = (Tensor)outputs[0];
          Program.Check(ReferenceEquals(y.Data, memory), "shared");
          Program.Equal(y.Sizes, new[] { 4, 5 }, "sizes");
          Program.Equal(memory.Take(20).ToArray(), wanted, "in place");
          Program.Check(outputs.Count == 4 && ((Tensor)outputs[1]).Count == 4, "others");
          Array.Clear(memory, 0, memory.Length);
          y = (Tensor)module.Run("forward", inputs)[0];
          Program.Equal(y.ToArray<float>(), wanted, "again");
          Program.Check(memory.All(v => v == 0), "the memory is the caller's again");
          Program.Fails(ErrorCode.InvalidArgument, "", () => module.RunInto(
              "forward", inputs, new[] { Tensor.Of(new float[4], 4) }));
          Program.Fails(ErrorCode.InvalidArgument, "its memory has Int32", () => module.RunInto(
              "forward", inputs, new[] { Tensor.Of(new int[40], 40) }));
          Program.Fails(ErrorCode.InvalidArgument, "memory for 5 outputs",
                        () => module.RunInto("forward", inputs, new Tensor[5]));
          Program.Check(module.Run("forward", inputs).Count == 4, "it runs again");
        }
      }
    }

    private static float Count(Module module) {
      Tensor ones = Tensor.Of(new float[] { 1, 1, 1 }, 3);
      return ((Tensor)module.Run("forward", ones)[0]).ToArray<float>()[0];
    }

    public static void State() {
      using (Module module = Module.Open(File("counter.pte"))) {
        Program.Equal(new[] { Count(module), Count(module) }, new float[] { 1, 2 }, "it counts");
        StateInfo state = module.States().Single();
        Program.Check(state.Name == "count" && state.Method == "forward", "state");
        Program.Equal(state.Content.ToArray<float>(), new float[] { 2, 2, 2 }, "content");
        byte[] saved = module.Snapshot();
        using (Module fork = module.Fork())
        using (Module copy = module.Clone()) {
          Program.Check(Count(fork) == 3 && Count(copy) == 1 && Count(module) == 3, "copies");
          fork.Restore(saved);
          Program.Check(Count(fork) == 3, "restored");
          Program.Fails(ErrorCode.InvalidArgument, "", () => fork.Restore(new byte[3]));
        }
        module.ResetState();
        Program.Check(Count(module) == 1, "reset");
      }
      using (Module module = Module.Open(File("noise.pte"))) {
        module.Seed(7);
        var y = (Tensor)module.Run("forward", Tensor.Zeros(DType.Float32, 4))[0];
        Program.Equal(y.ToBytes(), Program.Bytes("noise_7.bin"), "as after torch.manual_seed");
      }
    }

    public static void KernelsOfLibraries() {
      Tensor x = Tensor.Of(new float[] { 0, 1, 2, 3, 4, -5.5f }, 2, 3);
      using (Module module = Module.Open(File("twice.pte"))) {
        Program.Fails(ErrorCode.OperatorMissing, "acme::twice.out", () => module.Run("forward", x));
      }
      var options = new ModuleOptions { KernelLibraries = new[] { Program.Kernels } };
      using (Module module = Module.Open(File("twice.pte"), options))
      using (Module copy = module.Fork()) {
        foreach (Module one in new[] { module, copy }) {
          var y = (Tensor)one.Run("forward", x)[0];
          Program.Equal(y.ToArray<float>(), new float[] { 0, 2, 4, 6, 8, -11 }, "twice");
        }
      }
      options.KernelLibraries = new[] { "no.so" };
      Program.Fails(ErrorCode.AccessFailed, "no.so", () => Module.Open(File("twice.pte"), options));
    }

    // Each line of the table has a part of the error, and libraries.
    public static void BadKernels() {
      Tensor x = Tensor.Of(new float[] { 0, 1, 2, 3, 4, 5 }, 2, 3);
      string[] cases = System.IO.File.ReadAllLines(File("bad_kernels.tsv"));
      Program.Check(cases.Length >= 7, "there are cases");
      foreach (string line in cases) {
        string[] parts = line.Split('\t');
        var options = new ModuleOptions {
          KernelLibraries = parts[1].Split(new[] { ';' }, StringSplitOptions.RemoveEmptyEntries)
        };
        Program.Throws<RushlightException>(parts[0], () => {
          using (Module module = Module.Open(File("twice.pte"), options)) module.Run("forward", x);
        });
      }
      var good = new ModuleOptions { KernelLibraries = new[] { Program.Kernels } };
      using (Module module = Module.Open(File("twice.pte"), good)) {
        var y = (Tensor)module.Run("forward", x)[0];
        Program.Equal(y.ToArray<float>(), new float[] { 0, 2, 4, 6, 8, 10 }, "after bad ones");
      }
    }

    private sealed class FailingStream : MemoryStream {
      public override void Write(byte[] buffer, int offset, int count) {
        throw new IOException("the stream's own");
      }
    }

    public static void TracesAndReports() {
      var options = new ModuleOptions { ReportsFailures = true };
      using (Module module = Module.Open(File("counter.pte"), options)) {
        Program.Fails(ErrorCode.InvalidState, "", () => module.TraceWrite(new MemoryStream()));
        module.TraceStart(TraceValues.All);
        Count(module);
        module.TraceSave(File("counter_csharp.etdp"));
        module.TraceStop();
        var written = new MemoryStream();
        module.TraceWrite(written);
        Program.Equal(written.ToArray(), Program.Bytes("counter_csharp.etdp"), "the same trace");
        var values = new MemoryStream();
        module.TraceWriteValues(values);
        Program.Check(values.Length > 0, "values");
        Program.Throws<IOException>("the stream's own",
                                    () => module.TraceWrite(new FailingStream()));
        Program.Check(module.FailureReport() == null, "no failure yet");
        Program.Throws<RushlightException>("got 0 inputs", () => module.Run("forward"));
        System.IO.File.WriteAllBytes(File("counter_csharp.rlfr"), module.FailureReport());
      }
      using (Module module = Module.Open(File("counter.pte"))) {
        Program.Fails(ErrorCode.InvalidState, "", () => module.FailureReport());
      }
    }

    public static void Limits() {
      var options = new ModuleOptions { MemoryLimit = 64 };
      using (Module module = Module.Open(File("net_cpu.pte"), options)) {
        Program.Fails(ErrorCode.OutOfResources, "", () => module.Load("forward"));
      }
      using (Module module = Module.Open(File("net_cpu.pte"))) {
        module.Load("forward");
        Program.Check(module.MemoryInUse() > 0 && module.Method("forward").IsLoaded, "loaded");
        module.Unload("forward");
        Program.Check(module.MemoryInUse() == 0, "unloaded");
      }
    }

    public static void ClosedModules() {
      Module module = Module.Open(File("counter.pte"));
      module.Dispose();
      module.Dispose();
      Program.Throws<ObjectDisposedException>("Rushlight.Module", () => Count(module));
      Program.Throws<ObjectDisposedException>("Rushlight.Module", () => module.Cancel());
      Program.Throws<ObjectDisposedException>("Rushlight.Module", () => module.Clone());
    }

    public static void RunsAreCancelled() {
      var options = new ModuleOptions { MaxInstructions = 10000000000 };
      using (Module module = Module.Open(File("loop.pte"), options)) {
        module.Load("forward");
        module.Cancel();  // of no run: nothing
        var x = new object[] { Tensor.Zeros(DType.Float32, 2) };
        using (var source = new CancellationTokenSource(20)) {
          Program.Throws<OperationCanceledException>(
              "the run was cancelled", () => module.Run("forward", x, source.Token));
          Program.Throws<OperationCanceledException>(
              "", () => module.Run("forward", x, source.Token));
        }
        bool isOver = false;
        var other = new Thread(() => {
          while (!Volatile.Read(ref isOver)) module.Cancel();
        });
        other.Start();
        Program.Fails(ErrorCode.Cancelled, "the run was cancelled", () => module.Run("forward", x));
        Volatile.Write(ref isOver, true);
        other.Join();
        // A module that is disposed of during a run is closed when it has returned.
        using (var source = new CancellationTokenSource()) {
          var closing = new Thread(() => {
            Thread.Sleep(20);
            module.Dispose();
            source.Cancel();
          });
          closing.Start();
          Program.Throws<Exception>("", () => module.Run("forward", x, source.Token));
          closing.Join();
        }
        Program.Throws<ObjectDisposedException>("Rushlight.Module", () => module.Methods());
      }
    }

    public static void TwoThreads() {
      using (Module module = Module.Open(File("net_cpu.pte"))) {
        var failures = new List<Exception>();
        int refused = 0;
        var threads = new List<Thread>();
        for (int i = 0; i < 4; i++) {
          Module copy = i < 2 ? module : module.Clone();
          threads.Add(new Thread(() => {
            for (int k = 0; k < 50; k++) {
              try {
                byte[] y = ((Tensor)copy.Run("forward", X(9), Mask(9))[0]).ToBytes();
                if (!y.SequenceEqual(Program.Bytes("cpu_9_0.bin"))) throw new Exception("wrong");
              } catch (RushlightException error) when (error.Code == ErrorCode.InvalidState) {
                Interlocked.Increment(ref refused);  // the module that two threads use
              } catch (Exception error) {
                lock (failures) failures.Add(error);
              }
            }
            if (copy != module) copy.Dispose();
          }));
        }
        foreach (Thread thread in threads) thread.Start();
        foreach (Thread thread in threads) thread.Join();
        Program.Check(failures.Count == 0, "threads: " + string.Join("\n", failures));
        Program.Check(refused < 100, "refused " + refused);
      }
    }
  }
}
