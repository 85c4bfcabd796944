// Tensors over arrays, and copies of outputs.
using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;

namespace Rushlight {
  /// <summary>The type of a tensor's elements.</summary>
  public enum DType {
    UInt8 = 0,
    Int8 = 1,
    Int16 = 2,
    Int32 = 3,
    Int64 = 4,
    Float16 = 5,
    Float32 = 6,
    Float64 = 7,
    Complex64 = 9,
    Complex128 = 10,
    Bool = 11,
    BFloat16 = 15,
    UInt16 = 27,
    UInt32 = 28,
    UInt64 = 29
  }

  /// <summary>Elements in row-major order, in an array that the tensor shares with its
  /// maker.</summary>
  public sealed class Tensor {
    private static readonly Dictionary<DType, int> Bytes = new Dictionary<DType, int> {
      { DType.UInt8, 1 },    { DType.Int8, 1 },     { DType.Int16, 2 },     { DType.Int32, 4 },
      { DType.Int64, 8 },    { DType.Float16, 2 },  { DType.Float32, 4 },   { DType.Float64, 8 },
      { DType.Complex64, 8 }, { DType.Complex128, 16 }, { DType.Bool, 1 },  { DType.BFloat16, 2 },
      { DType.UInt16, 2 },   { DType.UInt32, 4 },   { DType.UInt64, 8 }
    };

    // The types of .NET that have a dtype, and can be pinned.
    private static readonly Dictionary<Type, DType> Types = new Dictionary<Type, DType> {
      { typeof(byte), DType.UInt8 },    { typeof(sbyte), DType.Int8 },
      { typeof(short), DType.Int16 },   { typeof(int), DType.Int32 },
      { typeof(long), DType.Int64 },    { typeof(float), DType.Float32 },
      { typeof(double), DType.Float64 }, { typeof(ushort), DType.UInt16 },
      { typeof(uint), DType.UInt32 },   { typeof(ulong), DType.UInt64 }
    };

    private readonly int[] sizes;

    /// <summary>The type of the elements.</summary>
    public DType DType { get; }

    /// <summary>The elements: an array of their type, or of bytes where .NET has no such
    /// type.</summary>
    public Array Data { get; }

    private Tensor(DType dtype, Array data, int[] sizes) {
      DType = dtype;
      Data = data;
      this.sizes = sizes;
    }

    /// <summary>The size of each dimension.</summary>
    public int[] Sizes => (int[])sizes.Clone();

    /// <summary>The number of elements.</summary>
    public int Count => (int)CountOf(sizes);

    /// <summary>A tensor over an array of numbers, which it shares.</summary>
    public static Tensor Of<T>(T[] data, params int[] sizes) where T : struct {
      if (data == null) throw new ArgumentNullException(nameof(data));
      if (!Types.TryGetValue(typeof(T), out DType dtype)) {
        throw Call.Wrong("elements of type " + typeof(T).Name + ": no dtype is one; give numbers, or "
                         + "bytes with Tensor.Wrap");
      }
      return Wrap(dtype, data, sizes);
    }

    /// <summary>A copy of bools.</summary>
    public static Tensor Of(bool[] data, params int[] sizes) {
      if (data == null) throw new ArgumentNullException(nameof(data));
      return Wrap(DType.Bool, Array.ConvertAll(data, flag => flag ? (byte)1 : (byte)0), sizes);
    }

    /// <summary>Zeros.</summary>
    public static Tensor Zeros(DType dtype, params int[] sizes) {
      long count = CountOf(sizes);
      foreach (KeyValuePair<Type, DType> known in Types) {
        if (known.Value == dtype) return new Tensor(dtype, New(known.Key, count), Clone(sizes));
      }
      return new Tensor(dtype, New(typeof(byte), count * BytesOf(dtype)), Clone(sizes));
    }

    /// <summary>A tensor over an array of the dtype's own type, or of bytes, which it
    /// shares.</summary>
    public static Tensor Wrap(DType dtype, Array data, params int[] sizes) {
      if (data == null) throw new ArgumentNullException(nameof(data));
      Type element = data.GetType().GetElementType();
      bool isOwn = Types.TryGetValue(element, out DType own) && own == dtype;
      if (!isOwn && element != typeof(byte)) {
        throw Call.Wrong("an array of " + element.Name + " for " + dtype + ": give one of bytes");
      }
      long wanted = CountOf(sizes) * BytesOf(dtype);
      if (Buffer.ByteLength(data) != wanted) {
        throw Call.Wrong(Buffer.ByteLength(data) + " bytes for the sizes " + Text(sizes) + ": "
                         + dtype + " of these sizes have " + wanted);
      }
      return new Tensor(dtype, data, Clone(sizes));
    }

    /// <summary>A copy of the elements of a tensor of this type.</summary>
    public T[] ToArray<T>() where T : struct {
      if (!Types.TryGetValue(typeof(T), out DType wanted) || wanted != DType) {
        throw Call.Wrong("the tensor is " + DType + ", its elements are no " + typeof(T).Name);
      }
      var elements = new T[CountOf(sizes)];
      Buffer.BlockCopy(Data, 0, elements, 0, Buffer.ByteLength(elements));
      return elements;
    }

    /// <summary>A copy of the elements of a Bool tensor.</summary>
    public bool[] ToBools() {
      if (DType != DType.Bool) throw Call.Wrong("the tensor is " + DType + ", not Bool");
      return Array.ConvertAll(ToBytes(), flag => flag != 0);
    }

    /// <summary>A copy of the bytes of the elements.</summary>
    public byte[] ToBytes() {
      var bytes = new byte[CountOf(sizes) * BytesOf(DType)];
      Buffer.BlockCopy(Data, 0, bytes, 0, bytes.Length);
      return bytes;
    }

    public override string ToString() => DType + Text(sizes);

    // ---- for the library ----

    internal rl_value_v1 Value(Pins pins) {
      return new rl_value_v1 {
        size = Call.SizeOf<rl_value_v1>(),
        kind = Native.Tensor,
        data = pins.Add(Data),
        sizes = pins.Add(sizes),
        rank = (uint)sizes.Length,
        dtype = (int)DType,
        nbytes = (UIntPtr)(ulong)(CountOf(sizes) * BytesOf(DType))
      };
    }

    /// <summary>A copy of an output, in row-major order.</summary>
    internal static Tensor Copy(rl_value_v1 value) {
      int[] sizes = Ints(value.sizes, value.rank);
      Tensor tensor = Zeros((DType)value.dtype, sizes);
      tensor.CopyFrom(value, sizes);
      return tensor;
    }

    /// <summary>A copy of the content of a state, in row-major order.</summary>
    internal static Tensor Copy(rl_state_info info) {
      var sizes = new int[info.rank];
      Array.Copy(info.sizes, sizes, sizes.Length);
      var strides = new int[info.rank];
      for (int k = sizes.Length - 1, next = 1; k >= 0; k--) {
        strides[info.dim_order[k]] = next;
        next *= Math.Max(sizes[info.dim_order[k]], 1);
      }
      using (var pins = new Pins()) {
        return Copy(new rl_value_v1 {
          dtype = info.dtype,
          rank = info.rank,
          sizes = pins.Add(sizes),
          strides = pins.Add(strides),
          data = info.data,
          nbytes = info.nbytes
        });
      }
    }

    /// <summary>This array with the sizes of an output, whose elements lie in it, and come into
    /// row-major order.</summary>
    internal Tensor WithSizesOf(rl_value_v1 value) {
      var result = new Tensor(DType, Data, Ints(value.sizes, value.rank));
      int[] strides = Ints(value.strides, value.rank);
      if (!IsRowMajor(result.sizes, strides)) result.CopyFrom(value, result.sizes);
      return result;
    }

    private void CopyFrom(rl_value_v1 value, int[] to) {
      byte[] bytes = Call.Copy(value.data, value.nbytes);
      int[] strides = Ints(value.strides, value.rank);
      if (!IsRowMajor(to, strides)) bytes = Gather(bytes, to, strides, BytesOf(DType));
      Buffer.BlockCopy(bytes, 0, Data, 0, bytes.Length);
    }

    private static byte[] Gather(byte[] from, int[] sizes, int[] strides, int bytes) {
      var to = new byte[from.Length];
      var index = new int[sizes.Length];
      int element = 0;
      for (int at = 0; at < to.Length; at += bytes) {
        Buffer.BlockCopy(from, element * bytes, to, at, bytes);
        for (int k = sizes.Length - 1; k >= 0; k--) {
          element += strides[k];
          if (++index[k] < sizes[k]) break;
          element -= strides[k] * sizes[k];
          index[k] = 0;
        }
      }
      return to;
    }

    private static bool IsRowMajor(int[] sizes, int[] strides) {
      long next = 1;
      for (int k = sizes.Length - 1; k >= 0; k--) {
        if (sizes[k] > 1 && strides[k] != next) return false;
        next *= sizes[k];
      }
      return true;
    }

    private static int[] Ints(IntPtr data, uint count) {
      var numbers = new int[count];
      if (count > 0) Marshal.Copy(data, numbers, 0, numbers.Length);
      return numbers;
    }

    private static int BytesOf(DType dtype) {
      if (Bytes.TryGetValue(dtype, out int bytes)) return bytes;
      throw Call.Wrong("there is no dtype with the number " + (int)dtype);
    }

    private static long CountOf(int[] sizes) {
      if (sizes == null) throw new ArgumentNullException(nameof(sizes));
      if (sizes.Length > Native.MaxRank) {
        throw Call.Wrong(sizes.Length + " dimensions: a tensor has at most " + Native.MaxRank);
      }
      long count = 1;
      foreach (int size in sizes) {
        if (size < 0) throw Call.Wrong("the sizes " + Text(sizes) + ": " + size + " is negative");
        if (size > 0 && count > int.MaxValue / size) {
          throw Call.Wrong("the sizes " + Text(sizes) + ": no array has so many elements");
        }
        count *= size;
      }
      return count;
    }

    private static Array New(Type element, long count) {
      if (count > int.MaxValue) throw Call.Wrong(count + " bytes: no array has so many elements");
      return Array.CreateInstance(element, (int)count);
    }

    private static int[] Clone(int[] sizes) => (int[])sizes.Clone();

    private static string Text(int[] sizes) => "[" + string.Join(", ", sizes) + "]";
  }
}
