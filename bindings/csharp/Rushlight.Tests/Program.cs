// Runs all tests, which need no other library. Arguments: the folder of binding_data.py, that of
// golden programs, a library of kernels, and the description of the ABI.
using System;
using System.Diagnostics;
using System.IO;
using System.Linq;
using System.Reflection;

namespace Rushlight.Tests {
  internal static class Program {
    internal static string Data, Golden, Kernels, Description;
    private static int checks;

    private static int Main(string[] arguments) {
      Data = arguments[0];
      Golden = arguments[1];
      Kernels = arguments[2];
      Description = arguments[3];
      int failures = 0;
      foreach (Type type in new[] { typeof(AbiTests), typeof(ModuleTests), typeof(TextTests) }) {
        foreach (var test in type.GetMethods(BindingFlags.Static | BindingFlags.Public)) {
          if (!Run(type.Name + "." + test.Name, test)) failures++;
        }
      }
      GC.Collect();
      GC.WaitForPendingFinalizers();
      Console.WriteLine(failures == 0 ? checks + " checks passed" : failures + " tests failed");
      return failures == 0 ? 0 : 1;
    }

    private static bool Run(string name, MethodBase test) {
      Stopwatch watch = Stopwatch.StartNew();
      try {
        test.Invoke(null, null);
        Console.WriteLine(name + ": " + watch.ElapsedMilliseconds + " ms");
        return true;
      } catch (TargetInvocationException error) {
        Console.WriteLine(name + ": FAILED: " + error.InnerException);
        return false;
      }
    }

    internal static void Check(bool ok, string what) {
      checks++;
      if (!ok) throw new Exception("wrong: " + what);
    }

    internal static void Equal<T>(T[] actual, T[] wanted, string what) {
      Check(actual.SequenceEqual(wanted),
            what + ": " + string.Join(" ", actual) + ", wanted " + string.Join(" ", wanted));
    }

    internal static void Fails(ErrorCode code, string part, Action call) {
      RushlightException error = Throws<RushlightException>(part, call);
      Check(error.Code == code, "the code " + error.Code + " of: " + error.Message);
    }

    internal static T Throws<T>(string part, Action call) where T : Exception {
      try {
        call();
      } catch (T error) {
        Check(error.Message.Contains(part), "the message: " + error.Message);
        return error;
      }
      throw new Exception("nothing was thrown; wanted: " + part);
    }

    internal static byte[] Bytes(string name) => File.ReadAllBytes(Path.Combine(Data, name));

    internal static string Text(string name) => File.ReadAllText(Path.Combine(Data, name));

    internal static T[] Numbers<T>(string name) where T : struct {
      byte[] bytes = Bytes(name);
      var numbers = new T[bytes.Length / Buffer.ByteLength(new T[1])];
      Buffer.BlockCopy(bytes, 0, numbers, 0, bytes.Length);
      return numbers;
    }
  }
}
