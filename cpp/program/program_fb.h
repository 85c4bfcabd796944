// The program file (.pte): methods as lists of values and instructions. The bulk data lies behind
// the flatbuffer, in segments.
//
// Made from schema/program.fbs by `python -m codegen.schema`; edit that file instead.
#pragma once

#include "rushlight/program/common_fb.h"
#include "rushlight/program/flatbuffer.h"

namespace rushlight {
namespace fb {

// How far a tensor's sizes may change between runs.
enum class TensorShapeDynamism : int8_t {
  STATIC = 0,
  DYNAMIC_BOUND = 1,
  DYNAMIC_UNBOUND = 2,
};

// Whether a tensor's bytes belong to the program file or to a data file beside it.
enum class TensorDataLocation : int8_t {
  SEGMENT = 0,
  EXTERNAL = 1,
};

// Whose memory a tensor or an arena is in.
enum class DeviceType : int8_t {
  CPU = 0,
  CUDA = 1,
};

// Whether a delegate's payload lies inside the flatbuffer or in a segment.
enum class DataLocation : int8_t {
  INLINE = 0,
  SEGMENT = 1,
};

// The kinds of values.
enum class KernelTypes : uint8_t {
  NONE = 0,
  Null = 1,
  Int = 2,
  Bool = 3,
  Double = 4,
  Tensor = 5,
  String = 6,
  IntList = 7,
  DoubleList = 8,
  BoolList = 9,
  TensorList = 10,
  OptionalTensorList = 11,
};

// The kinds of instructions.
enum class InstructionArguments : uint8_t {
  NONE = 0,
  KernelCall = 1,
  DelegateCall = 2,
  MoveCall = 3,
  JumpFalseCall = 4,
  FreeCall = 5,
};

// No value: an absent optional argument.
class Null : public Table {
 public:
  using Table::Table;
};

// A whole number; a symbolic one is computed into it at run time.
class Int : public Table {
 public:
  using Table::Table;
  int64_t int_val() const { return scalar<int64_t>(0, 0); }
};

// A truth value.
class Bool : public Table {
 public:
  using Table::Table;
  bool bool_val() const { return scalar<bool>(0, false); }
};

// A floating-point number.
class Double : public Table {
 public:
  using Table::Table;
  double double_val() const { return scalar<double>(0, 0.0); }
};

// A text.
class String : public Table {
 public:
  using Table::Table;
  StringView string_val() const { return string(0); }
  bool has_string_val() const { return field(0) != nullptr; }
};

// Integers, each an Int elsewhere in the method's values, so that some may be computed at run time.
class IntList : public Table {
 public:
  using Table::Table;
  // Indices of values.
  Vector<int64_t> items() const { return Vector<int64_t>(target(0)); }
  bool has_items() const { return field(0) != nullptr; }
};

// Floating-point numbers.
class DoubleList : public Table {
 public:
  using Table::Table;
  // The numbers themselves.
  Vector<double> items() const { return Vector<double>(target(0)); }
  bool has_items() const { return field(0) != nullptr; }
};

// Truth values.
class BoolList : public Table {
 public:
  using Table::Table;
  // The flags themselves.
  Vector<bool> items() const { return Vector<bool>(target(0)); }
  bool has_items() const { return field(0) != nullptr; }
};

// Tensors, each a value of the method.
class TensorList : public Table {
 public:
  using Table::Table;
  // Indices of values, all smaller than the list's own.
  Vector<int32_t> items() const { return Vector<int32_t>(target(0)); }
  bool has_items() const { return field(0) != nullptr; }
};

// Tensors, each a value of the method, of which some may be missing.
class OptionalTensorList : public Table {
 public:
  using Table::Table;
  // Indices of values, all smaller than the list's own; -1 or the index of a Null means none.
  Vector<int32_t> items() const { return Vector<int32_t>(target(0)); }
  bool has_items() const { return field(0) != nullptr; }
};

// Where a planned tensor lies: byte offset `low | high << 32` of the arena `memory_id`.
class AllocationDetails : public Table {
 public:
  using Table::Table;
  // Index into non_const_buffer_sizes; 0 is reserved.
  uint32_t memory_id() const { return scalar<uint32_t>(0, 0); }
  uint32_t memory_offset_low() const { return scalar<uint32_t>(1, 0); }
  uint32_t memory_offset_high() const { return scalar<uint32_t>(2, 0); }
};

// Facts that only some tensors need.
class ExtraTensorInfo : public Table {
 public:
  using Table::Table;
  uint64_t mutable_data_segments_idx() const { return scalar<uint64_t>(0, 0); }
  // The name of a mutable buffer, or the key of the tensor in the data file.
  StringView fully_qualified_name() const { return string(1); }
  bool has_fully_qualified_name() const { return field(1) != nullptr; }
  TensorDataLocation location() const {
    return scalar<TensorDataLocation>(2, TensorDataLocation::SEGMENT);
  }
  DeviceType device_type() const { return scalar<DeviceType>(3, DeviceType::CPU); }
  int8_t device_index() const { return scalar<int8_t>(4, 0); }
};

// A tensor. Its bytes are planned (allocation_info), constant (data_buffer_idx), planned with a
// first content (both), external (extra_tensor_info), or given by the caller (none of them).
class Tensor : public Table {
 public:
  using Table::Table;
  ScalarType scalar_type() const { return scalar<ScalarType>(0, ScalarType::BYTE); }
  // Must be 0.
  int32_t storage_offset() const { return scalar<int32_t>(1, 0); }
  // For a dynamic tensor the upper bounds.
  Vector<int32_t> sizes() const { return Vector<int32_t>(target(2)); }
  bool has_sizes() const { return field(2) != nullptr; }
  // The dimensions from the outermost in memory to the innermost; as long as sizes.
  Vector<uint8_t> dim_order() const { return Vector<uint8_t>(target(3)); }
  bool has_dim_order() const { return field(3) != nullptr; }
  bool requires_grad() const { return scalar<bool>(4, false); }
  // Index into the offsets of the constant segment, or of the mutable one if the tensor is planned;
  // 0 is none.
  uint32_t data_buffer_idx() const { return scalar<uint32_t>(5, 0); }
  AllocationDetails allocation_info() const { return AllocationDetails(target(6)); }
  bool has_allocation_info() const { return field(6) != nullptr; }
  // 0 is strided, the only layout that is run.
  int8_t layout() const { return scalar<int8_t>(7, 0); }
  TensorShapeDynamism shape_dynamism() const {
    return scalar<TensorShapeDynamism>(8, TensorShapeDynamism::STATIC);
  }
  ExtraTensorInfo extra_tensor_info() const { return ExtraTensorInfo(target(9)); }
  bool has_extra_tensor_info() const { return field(9) != nullptr; }
};

// One value of a method; instructions name it by its index.
class EValue : public Table {
 public:
  using Table::Table;
  KernelTypes val_type() const { return scalar<KernelTypes>(0, KernelTypes::NONE); }
  // Absent unless the type is this one.
  Null val_as_Null() const { return Null(member(0, static_cast<uint8_t>(KernelTypes::Null))); }
  Int val_as_Int() const { return Int(member(0, static_cast<uint8_t>(KernelTypes::Int))); }
  Bool val_as_Bool() const { return Bool(member(0, static_cast<uint8_t>(KernelTypes::Bool))); }
  Double val_as_Double() const {
    return Double(member(0, static_cast<uint8_t>(KernelTypes::Double)));
  }
  Tensor val_as_Tensor() const {
    return Tensor(member(0, static_cast<uint8_t>(KernelTypes::Tensor)));
  }
  String val_as_String() const {
    return String(member(0, static_cast<uint8_t>(KernelTypes::String)));
  }
  IntList val_as_IntList() const {
    return IntList(member(0, static_cast<uint8_t>(KernelTypes::IntList)));
  }
  DoubleList val_as_DoubleList() const {
    return DoubleList(member(0, static_cast<uint8_t>(KernelTypes::DoubleList)));
  }
  BoolList val_as_BoolList() const {
    return BoolList(member(0, static_cast<uint8_t>(KernelTypes::BoolList)));
  }
  TensorList val_as_TensorList() const {
    return TensorList(member(0, static_cast<uint8_t>(KernelTypes::TensorList)));
  }
  OptionalTensorList val_as_OptionalTensorList() const {
    return OptionalTensorList(member(0, static_cast<uint8_t>(KernelTypes::OptionalTensorList)));
  }
  bool has_val() const { return field(1) != nullptr; }
};

// Runs an operator. The arguments are those of its schema in order, then its results.
class KernelCall : public Table {
 public:
  using Table::Table;
  // Index into the method's operators.
  int32_t op_index() const { return scalar<int32_t>(0, 0); }
  // Indices of values.
  Vector<int32_t> args() const { return Vector<int32_t>(target(1)); }
  bool has_args() const { return field(1) != nullptr; }
};

// Runs a delegate: its inputs, then its outputs.
class DelegateCall : public Table {
 public:
  using Table::Table;
  // Index into the method's delegates.
  int32_t delegate_index() const { return scalar<int32_t>(0, 0); }
  // Indices of values.
  Vector<int32_t> args() const { return Vector<int32_t>(target(1)); }
  bool has_args() const { return field(1) != nullptr; }
};

// Makes the value `move_to` denote what `move_from` denotes.
class MoveCall : public Table {
 public:
  using Table::Table;
  int32_t move_from() const { return scalar<int32_t>(0, 0); }
  int32_t move_to() const { return scalar<int32_t>(1, 0); }
};

// Goes on at `destination_instruction` if the condition is false; the number of instructions is a
// destination too, and ends the chain.
class JumpFalseCall : public Table {
 public:
  using Table::Table;
  int32_t cond_value_index() const { return scalar<int32_t>(0, 0); }
  int32_t destination_instruction() const { return scalar<int32_t>(1, 0); }
};

// Drops the memory of an unplanned tensor.
class FreeCall : public Table {
 public:
  using Table::Table;
  int32_t value_index() const { return scalar<int32_t>(0, 0); }
};

// One entry of a chain.
class Instruction : public Table {
 public:
  using Table::Table;
  InstructionArguments instr_args_type() const {
    return scalar<InstructionArguments>(0, InstructionArguments::NONE);
  }
  // Absent unless the type is this one.
  KernelCall instr_args_as_KernelCall() const {
    return KernelCall(member(0, static_cast<uint8_t>(InstructionArguments::KernelCall)));
  }
  DelegateCall instr_args_as_DelegateCall() const {
    return DelegateCall(member(0, static_cast<uint8_t>(InstructionArguments::DelegateCall)));
  }
  MoveCall instr_args_as_MoveCall() const {
    return MoveCall(member(0, static_cast<uint8_t>(InstructionArguments::MoveCall)));
  }
  JumpFalseCall instr_args_as_JumpFalseCall() const {
    return JumpFalseCall(member(0, static_cast<uint8_t>(InstructionArguments::JumpFalseCall)));
  }
  FreeCall instr_args_as_FreeCall() const {
    return FreeCall(member(0, static_cast<uint8_t>(InstructionArguments::FreeCall)));
  }
  bool has_instr_args() const { return field(1) != nullptr; }
};

// One line of a Python stack.
class Frame : public Table {
 public:
  using Table::Table;
  StringView filename() const { return string(0); }
  bool has_filename() const { return field(0) != nullptr; }
  int32_t lineno() const { return scalar<int32_t>(1, 0); }
  StringView name() const { return string(2); }
  bool has_name() const { return field(2) != nullptr; }
  // The text of the line.
  StringView context() const { return string(3); }
  bool has_context() const { return field(3) != nullptr; }
};

// A stack, outermost frame first.
class FrameList : public Table {
 public:
  using Table::Table;
  Tables<Frame> items() const { return Tables<Frame>(target(0)); }
  bool has_items() const { return field(0) != nullptr; }
};

// The instructions of a method, run one after the other unless they jump.
class Chain : public Table {
 public:
  using Table::Table;
  Vector<int32_t> inputs() const { return Vector<int32_t>(target(0)); }
  bool has_inputs() const { return field(0) != nullptr; }
  Vector<int32_t> outputs() const { return Vector<int32_t>(target(1)); }
  bool has_outputs() const { return field(1) != nullptr; }
  Tables<Instruction> instructions() const { return Tables<Instruction>(target(2)); }
  bool has_instructions() const { return field(2) != nullptr; }
  // One list for each instruction.
  Tables<FrameList> stacktrace() const { return Tables<FrameList>(target(3)); }
  bool has_stacktrace() const { return field(3) != nullptr; }
};

// The structure of a method's arguments and results, as torch writes it in JSON.
class ContainerMetadata : public Table {
 public:
  using Table::Table;
  StringView encoded_inp_str() const { return string(0); }
  bool has_encoded_inp_str() const { return field(0) != nullptr; }
  StringView encoded_out_str() const { return string(1); }
  bool has_encoded_out_str() const { return field(1) != nullptr; }
};

// An operator by name ("aten::add") and overload ("out", or empty).
class Operator : public Table {
 public:
  using Table::Table;
  StringView name() const { return string(0); }
  bool has_name() const { return field(0) != nullptr; }
  StringView overload() const { return string(1); }
  bool has_overload() const { return field(1) != nullptr; }
};

// An option that a backend was compiled with and is started with.
class CompileSpec : public Table {
 public:
  using Table::Table;
  StringView key() const { return string(0); }
  bool has_key() const { return field(0) != nullptr; }
  Vector<uint8_t> value() const { return Vector<uint8_t>(target(1)); }
  bool has_value() const { return field(1) != nullptr; }
};

// Where the payload of a delegate is.
class BackendDelegateDataReference : public Table {
 public:
  using Table::Table;
  DataLocation location() const { return scalar<DataLocation>(0, DataLocation::INLINE); }
  // Index into backend_delegate_data or into segments.
  uint32_t index() const { return scalar<uint32_t>(1, 0); }
};

// A part of the method that a backend compiled and runs.
class BackendDelegate : public Table {
 public:
  using Table::Table;
  // The backend's name.
  StringView id() const { return string(0); }
  bool has_id() const { return field(0) != nullptr; }
  BackendDelegateDataReference processed() const { return BackendDelegateDataReference(target(1)); }
  bool has_processed() const { return field(1) != nullptr; }
  Tables<CompileSpec> compile_specs() const { return Tables<CompileSpec>(target(2)); }
  bool has_compile_specs() const { return field(2) != nullptr; }
};

// Says that an arena lies in the memory of a device.
class NonConstBufferDevice : public Table {
 public:
  using Table::Table;
  // The arena's memory id.
  int32_t buffer_idx() const { return scalar<int32_t>(0, 0); }
  DeviceType device_type() const { return scalar<DeviceType>(1, DeviceType::CPU); }
  int8_t device_index() const { return scalar<int8_t>(2, 0); }
};

// A method.
class ExecutionPlan : public Table {
 public:
  using Table::Table;
  StringView name() const { return string(0); }
  bool has_name() const { return field(0) != nullptr; }
  ContainerMetadata container_meta_type() const { return ContainerMetadata(target(1)); }
  bool has_container_meta_type() const { return field(1) != nullptr; }
  Tables<EValue> values() const { return Tables<EValue>(target(2)); }
  bool has_values() const { return field(2) != nullptr; }
  // Indices of values.
  Vector<int32_t> inputs() const { return Vector<int32_t>(target(3)); }
  bool has_inputs() const { return field(3) != nullptr; }
  // Indices of values.
  Vector<int32_t> outputs() const { return Vector<int32_t>(target(4)); }
  bool has_outputs() const { return field(4) != nullptr; }
  Tables<Chain> chains() const { return Tables<Chain>(target(5)); }
  bool has_chains() const { return field(5) != nullptr; }
  Tables<Operator> operators() const { return Tables<Operator>(target(6)); }
  bool has_operators() const { return field(6) != nullptr; }
  Tables<BackendDelegate> delegates() const { return Tables<BackendDelegate>(target(7)); }
  bool has_delegates() const { return field(7) != nullptr; }
  // Bytes of each arena; element 0 is reserved and 0.
  Vector<int64_t> non_const_buffer_sizes() const { return Vector<int64_t>(target(8)); }
  bool has_non_const_buffer_sizes() const { return field(8) != nullptr; }
  // The arenas that are not in main memory.
  Tables<NonConstBufferDevice> non_const_buffer_device() const {
    return Tables<NonConstBufferDevice>(target(9));
  }
  bool has_non_const_buffer_device() const { return field(9) != nullptr; }
};

// A constant inside the flatbuffer, as only old files have it.
class Buffer : public Table {
 public:
  using Table::Table;
  Vector<uint8_t> storage() const { return Vector<uint8_t>(target(0)); }
  bool has_storage() const { return field(0) != nullptr; }
};

// A delegate's payload inside the flatbuffer.
class BackendDelegateInlineData : public Table {
 public:
  using Table::Table;
  Vector<uint8_t> data() const { return Vector<uint8_t>(target(0)); }
  bool has_data() const { return field(0) != nullptr; }
};

// Where the parts of a segment begin; part 0 is a placeholder for "none".
class SubsegmentOffsets : public Table {
 public:
  using Table::Table;
  uint32_t segment_index() const { return scalar<uint32_t>(0, 0); }
  Vector<uint64_t> offsets() const { return Vector<uint64_t>(target(1)); }
  bool has_offsets() const { return field(1) != nullptr; }
};

// A segment by name, for backends and tools.
class NamedData : public Table {
 public:
  using Table::Table;
  StringView key() const { return string(0); }
  bool has_key() const { return field(0) != nullptr; }
  uint32_t segment_index() const { return scalar<uint32_t>(1, 0); }
};

// The whole file.
class Program : public Table {
 public:
  using Table::Table;
  uint32_t version() const { return scalar<uint32_t>(0, 0); }
  Tables<ExecutionPlan> execution_plan() const { return Tables<ExecutionPlan>(target(1)); }
  bool has_execution_plan() const { return field(1) != nullptr; }
  // Old files only.
  Tables<Buffer> constant_buffer() const { return Tables<Buffer>(target(2)); }
  bool has_constant_buffer() const { return field(2) != nullptr; }
  Tables<BackendDelegateInlineData> backend_delegate_data() const {
    return Tables<BackendDelegateInlineData>(target(3));
  }
  bool has_backend_delegate_data() const { return field(3) != nullptr; }
  Tables<DataSegment> segments() const { return Tables<DataSegment>(target(4)); }
  bool has_segments() const { return field(4) != nullptr; }
  SubsegmentOffsets constant_segment() const { return SubsegmentOffsets(target(5)); }
  bool has_constant_segment() const { return field(5) != nullptr; }
  Tables<SubsegmentOffsets> mutable_data_segments() const {
    return Tables<SubsegmentOffsets>(target(6));
  }
  bool has_mutable_data_segments() const { return field(6) != nullptr; }
  Tables<NamedData> named_data() const { return Tables<NamedData>(target(7)); }
  bool has_named_data() const { return field(7) != nullptr; }
};

// What verify_flatbuffer walks.
namespace program_layout {

inline constexpr FieldLayout kFields[] = {
    // Program
    {FieldKind::Scalar, 2},  // version
    {FieldKind::Tables, 1},  // execution_plan
    {FieldKind::Tables, 2},  // constant_buffer
    {FieldKind::Tables, 3},  // backend_delegate_data
    {FieldKind::Tables, 4},  // segments
    {FieldKind::Table, 5},   // constant_segment
    {FieldKind::Tables, 5},  // mutable_data_segments
    {FieldKind::Tables, 6},  // named_data
    // ExecutionPlan
    {FieldKind::String, 0},   // name
    {FieldKind::Table, 7},    // container_meta_type
    {FieldKind::Tables, 8},   // values
    {FieldKind::Vector, 2},   // inputs
    {FieldKind::Vector, 2},   // outputs
    {FieldKind::Tables, 9},   // chains
    {FieldKind::Tables, 10},  // operators
    {FieldKind::Tables, 11},  // delegates
    {FieldKind::Vector, 3},   // non_const_buffer_sizes
    {FieldKind::Tables, 12},  // non_const_buffer_device
    // Buffer
    {FieldKind::Vector, 0},  // storage
    // BackendDelegateInlineData
    {FieldKind::Vector, 0},  // data
    // DataSegment
    {FieldKind::Scalar, 3},  // offset
    {FieldKind::Scalar, 3},  // size
    // SubsegmentOffsets
    {FieldKind::Scalar, 2},  // segment_index
    {FieldKind::Vector, 3},  // offsets
    // NamedData
    {FieldKind::String, 0},  // key
    {FieldKind::Scalar, 2},  // segment_index
    // ContainerMetadata
    {FieldKind::String, 0},  // encoded_inp_str
    {FieldKind::String, 0},  // encoded_out_str
    // EValue
    {FieldKind::Union, 0},       // val_type
    {FieldKind::UnionValue, 0},  // val
    // Chain
    {FieldKind::Vector, 2},   // inputs
    {FieldKind::Vector, 2},   // outputs
    {FieldKind::Tables, 24},  // instructions
    {FieldKind::Tables, 25},  // stacktrace
    // Operator
    {FieldKind::String, 0},  // name
    {FieldKind::String, 0},  // overload
    // BackendDelegate
    {FieldKind::String, 0},   // id
    {FieldKind::Table, 26},   // processed
    {FieldKind::Tables, 27},  // compile_specs
    // NonConstBufferDevice
    {FieldKind::Scalar, 2},  // buffer_idx
    {FieldKind::Scalar, 0},  // device_type
    {FieldKind::Scalar, 0},  // device_index
    // Null
    // Int
    {FieldKind::Scalar, 3},  // int_val
    // Bool
    {FieldKind::Scalar, 0},  // bool_val
    // Double
    {FieldKind::Scalar, 3},  // double_val
    // Tensor
    {FieldKind::Scalar, 0},  // scalar_type
    {FieldKind::Scalar, 2},  // storage_offset
    {FieldKind::Vector, 2},  // sizes
    {FieldKind::Vector, 0},  // dim_order
    {FieldKind::Scalar, 0},  // requires_grad
    {FieldKind::Scalar, 2},  // data_buffer_idx
    {FieldKind::Table, 28},  // allocation_info
    {FieldKind::Scalar, 0},  // layout
    {FieldKind::Scalar, 0},  // shape_dynamism
    {FieldKind::Table, 29},  // extra_tensor_info
    // String
    {FieldKind::String, 0},  // string_val
    // IntList
    {FieldKind::Vector, 3},  // items
    // DoubleList
    {FieldKind::Vector, 3},  // items
    // BoolList
    {FieldKind::Vector, 0},  // items
    // TensorList
    {FieldKind::Vector, 2},  // items
    // OptionalTensorList
    {FieldKind::Vector, 2},  // items
    // Instruction
    {FieldKind::Union, 1},       // instr_args_type
    {FieldKind::UnionValue, 0},  // instr_args
    // FrameList
    {FieldKind::Tables, 35},  // items
    // BackendDelegateDataReference
    {FieldKind::Scalar, 0},  // location
    {FieldKind::Scalar, 2},  // index
    // CompileSpec
    {FieldKind::String, 0},  // key
    {FieldKind::Vector, 0},  // value
    // AllocationDetails
    {FieldKind::Scalar, 2},  // memory_id
    {FieldKind::Scalar, 2},  // memory_offset_low
    {FieldKind::Scalar, 2},  // memory_offset_high
    // ExtraTensorInfo
    {FieldKind::Scalar, 3},  // mutable_data_segments_idx
    {FieldKind::String, 0},  // fully_qualified_name
    {FieldKind::Scalar, 0},  // location
    {FieldKind::Scalar, 0},  // device_type
    {FieldKind::Scalar, 0},  // device_index
    // KernelCall
    {FieldKind::Scalar, 2},  // op_index
    {FieldKind::Vector, 2},  // args
    // DelegateCall
    {FieldKind::Scalar, 2},  // delegate_index
    {FieldKind::Vector, 2},  // args
    // MoveCall
    {FieldKind::Scalar, 2},  // move_from
    {FieldKind::Scalar, 2},  // move_to
    // JumpFalseCall
    {FieldKind::Scalar, 2},  // cond_value_index
    {FieldKind::Scalar, 2},  // destination_instruction
    // FreeCall
    {FieldKind::Scalar, 2},  // value_index
    // Frame
    {FieldKind::String, 0},  // filename
    {FieldKind::Scalar, 2},  // lineno
    {FieldKind::String, 0},  // name
    {FieldKind::String, 0},  // context
};
inline constexpr TableLayout kTables[] = {
    {0, 8},    // 0 Program
    {8, 10},   // 1 ExecutionPlan
    {18, 1},   // 2 Buffer
    {19, 1},   // 3 BackendDelegateInlineData
    {20, 2},   // 4 DataSegment
    {22, 2},   // 5 SubsegmentOffsets
    {24, 2},   // 6 NamedData
    {26, 2},   // 7 ContainerMetadata
    {28, 2},   // 8 EValue
    {30, 4},   // 9 Chain
    {34, 2},   // 10 Operator
    {36, 3},   // 11 BackendDelegate
    {39, 3},   // 12 NonConstBufferDevice
    {42, 0},   // 13 Null
    {42, 1},   // 14 Int
    {43, 1},   // 15 Bool
    {44, 1},   // 16 Double
    {45, 10},  // 17 Tensor
    {55, 1},   // 18 String
    {56, 1},   // 19 IntList
    {57, 1},   // 20 DoubleList
    {58, 1},   // 21 BoolList
    {59, 1},   // 22 TensorList
    {60, 1},   // 23 OptionalTensorList
    {61, 2},   // 24 Instruction
    {63, 1},   // 25 FrameList
    {64, 2},   // 26 BackendDelegateDataReference
    {66, 2},   // 27 CompileSpec
    {68, 3},   // 28 AllocationDetails
    {71, 5},   // 29 ExtraTensorInfo
    {76, 2},   // 30 KernelCall
    {78, 2},   // 31 DelegateCall
    {80, 2},   // 32 MoveCall
    {82, 2},   // 33 JumpFalseCall
    {84, 1},   // 34 FreeCall
    {85, 4},   // 35 Frame
};
inline constexpr UnionLayout kUnions[] = {
    {0, 11},  // KernelTypes
    {11, 5},  // InstructionArguments
};
inline constexpr uint8_t kMembers[] = {
    13,  // Null
    14,  // Int
    15,  // Bool
    16,  // Double
    17,  // Tensor
    18,  // String
    19,  // IntList
    20,  // DoubleList
    21,  // BoolList
    22,  // TensorList
    23,  // OptionalTensorList
    30,  // KernelCall
    31,  // DelegateCall
    32,  // MoveCall
    33,  // JumpFalseCall
    34,  // FreeCall
};
inline constexpr Layout kProgram = {kFields, kTables, kUnions, kMembers};

}  // namespace program_layout

inline constexpr char kProgramIdentifier[] = "ET12";

// True if the buffer can be read through these views; says nothing of its meaning.
inline bool verify_Program(const uint8_t* data, size_t size) {
  return verify_flatbuffer(data, size, program_layout::kProgram);
}
// The root of a buffer that was verified.
inline Program root_Program(const uint8_t* data) { return Program(follow(data)); }

}  // namespace fb
}  // namespace rushlight
