// The P/Invoke declarations are what cpp/c_api/abi describes.
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Runtime.InteropServices;
using System.Text.RegularExpressions;

namespace Rushlight.Tests {
  internal static class AbiTests {
    private static readonly Assembly Bound = typeof(Module).Assembly;
    private static readonly Type Functions = Bound.GetType("Rushlight.Native");
    // What the binding leaves out: allocators, the log, and programs that the caller reads.
    private static readonly string[] Unbound = {
      "rl_set_allocator", "rl_set_log", "rl_module_open_source"
    };
    // Tables of backends and kernels that are linked, and what belongs to those.
    private static readonly string[] UnboundStructs = {
      "rl_spec_v1", "rl_option_v1", "rl_host_v1", "rl_init_v1", "rl_call_v1", "rl_backend_v1",
      "rl_kernel_host_v1", "rl_kernel_call_v1", "rl_kernel_v1", "rl_allocator", "rl_source"
    };
    private static readonly Dictionary<string, Type> Scalars = new Dictionary<string, Type> {
      { "uint32_t", typeof(uint) },   { "int32_t", typeof(int) },  { "rl_status", typeof(int) },
      { "uint64_t", typeof(ulong) },  { "int64_t", typeof(long) }, { "size_t", typeof(UIntPtr) },
      { "float", typeof(float) },     { "double", typeof(double) }, { "uint8_t", typeof(byte) }
    };

    public static void SizesOffsetsAndTypesOfFields() {
      Type bound = null;
      var missing = new List<string>();
      int fields = 0;
      foreach (string line in File.ReadLines(Program.Description)) {
        Match head = Regex.Match(line, @"^struct (\w+): (\d+) bytes");
        Match field = Regex.Match(line, @"^  (\d+)\+(\d+) (\w+): (.+)");
        if (head.Success) {
          bound = Bound.GetType("Rushlight." + head.Groups[1].Value);
          if (bound == null) missing.Add(head.Groups[1].Value);
          if (bound == null) continue;
          int size = Marshal.SizeOf(bound);
          Program.Check(size == int.Parse(head.Groups[2].Value), bound.Name + " has " + size);
        } else if (field.Success && bound != null) {
          CheckField(bound, field);
          fields++;
        }
      }
      Program.Equal(missing.ToArray(), UnboundStructs, "structs that are not bound");
      Program.Check(fields > 150, "fields: " + fields);
    }

    private static void CheckField(Type bound, Match field) {
      string name = field.Groups[3].Value, kind = field.Groups[4].Value;
      FieldInfo known = bound.GetField(name, BindingFlags.Instance | BindingFlags.NonPublic);
      Program.Check(known != null, bound.Name + "." + name + " is there");
      int offset = Marshal.OffsetOf(bound, name).ToInt32();
      string what = bound.Name + "." + name + " at " + offset + " is " + known.FieldType.Name;
      Program.Check(offset == int.Parse(field.Groups[1].Value), what);
      if (kind.EndsWith("*")) {
        Program.Check(known.FieldType == typeof(IntPtr), what);
      } else if (kind.EndsWith("]")) {
        var marshalled = known.GetCustomAttribute<MarshalAsAttribute>();
        int item = Marshal.SizeOf(known.FieldType.GetElementType());
        int bytes = int.Parse(field.Groups[2].Value);
        Program.Check(marshalled.SizeConst * item == bytes, what);
      } else {
        Program.Check(IsBound(known.FieldType, kind), what);
      }
    }

    public static void Constants() {
      var known = new Dictionary<string, long>();
      foreach (string line in File.ReadLines(Program.Description)) {
        Match constant = Regex.Match(line, @"^constant RL_(\w+) = (\d+)");
        if (!constant.Success) continue;
        string name = constant.Groups[1].Value.Replace("_", "").ToLowerInvariant();
        known[name] = long.Parse(constant.Groups[2].Value);
      }
      CheckEnum<ErrorCode>("", known);
      CheckEnum<DType>("", known, "bool", "boolean");
      CheckEnum<Finish>("finish", known);
      CheckEnum<Cache>("cache", known);
      CheckEnum<TraceValues>("trace", known, "none", "times", "all", "allvalues");
      CheckEnum<ValueKind>("", known, "text", "string");
      const BindingFlags Static = BindingFlags.Static | BindingFlags.NonPublic;
      foreach (FieldInfo field in Functions.GetFields(Static)) {
        string name = field.Name.ToLowerInvariant();
        if (name == "library" || name == "noindex") continue;
        if (name == "abiversion") {
          string version = Path.GetFileNameWithoutExtension(Program.Description).TrimStart('v');
          string[] parts = version.Split('.');
          Program.Check(Convert.ToInt64(field.GetRawConstantValue())
                            == long.Parse(parts[0]) * 1000 + long.Parse(parts[1]), "the version");
          continue;
        }
        Program.Check(known[name] == Convert.ToInt64(field.GetRawConstantValue()), field.Name);
      }
    }

    private static void CheckEnum<T>(string prefix, Dictionary<string, long> known,
                                     params string[] renamed) {
      foreach (string member in Enum.GetNames(typeof(T))) {
        string name = member.ToLowerInvariant();
        int at = Array.IndexOf(renamed, name);
        if (at >= 0 && at % 2 == 0) name = renamed[at + 1];
        Program.Check(known[prefix + name] == Convert.ToInt64(Enum.Parse(typeof(T), member)),
                      typeof(T).Name + "." + member);
      }
    }

    public static void TypesOfFunctions() {
      var missing = new List<string>();
      foreach (string line in File.ReadLines(Program.Description)) {
        Match function = Regex.Match(line, @"^function (\w+) = (.+?)\((.*)\)$");
        if (!function.Success) continue;
        string name = function.Groups[1].Value;
        var bound = Functions.GetMethod(name, BindingFlags.Static | BindingFlags.NonPublic);
        if (bound == null) {
          missing.Add(name);
          continue;
        }
        string[] wanted = function.Groups[3].Value == "void"
                              ? new string[0]
                              : Regex.Split(function.Groups[3].Value, ", ");
        ParameterInfo[] actual = bound.GetParameters();
        Program.Check(actual.Length == wanted.Length, name + " takes " + actual.Length);
        for (int i = 0; i < wanted.Length; i++) {
          Program.Check(IsBound(actual[i].ParameterType, wanted[i]),
                        name + ": " + actual[i].Name + " is a " + actual[i].ParameterType.Name);
        }
        Program.Check(IsBound(bound.ReturnType, function.Groups[2].Value), name + " returns");
        var import = bound.GetCustomAttribute<DllImportAttribute>();
        Program.Check(import.Value == "rushlight", name + " is of the library");
      }
      Program.Equal(missing.OrderBy(n => n).ToArray(), Unbound.OrderBy(n => n).ToArray(),
                    "functions that are not bound");
    }

    /// <summary>Whether a type of C# is passed as one of C.</summary>
    private static bool IsBound(Type type, string c) {
      if (Scalars.TryGetValue(c, out Type scalar)) return type == scalar;
      bool isPointer = type == typeof(IntPtr) || type.IsByRef || type.IsArray
                       || typeof(SafeHandle).IsAssignableFrom(type)
                       || typeof(Delegate).IsAssignableFrom(type);
      if (c.EndsWith("*")) {
        string pointed = c.Replace("const ", "").TrimEnd('*');
        Type element = type.HasElementType ? type.GetElementType() : null;
        if (element != null && pointed.StartsWith("rl_") && !c.EndsWith("**")) {
          return element.Name == pointed;
        }
        if (element != null && Scalars.TryGetValue(pointed, out Type item)) return element == item;
        return isPointer;
      }
      return type.Name == c;
    }
  }
}
