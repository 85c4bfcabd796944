#include "rushlight/backends/xnnpack/payload/reader_nodes.h"

namespace rushlight::xnnpack {
namespace {

namespace wire = fb::xnnpack;

template <typename Table>
void take_unary(Table table, Node* node) {
  node->n_inputs = node->n_outputs = 1;
  node->inputs[0] = table.input_id();
  node->outputs[0] = table.output_id();
  node->flags = table.flags();
}

void take_binary(wire::Binary table, Node* node) {
  node->n_inputs = 2;
  node->n_outputs = 1;
  node->inputs[0] = table.input1_id();
  node->inputs[1] = table.input2_id();
  node->outputs[0] = table.output_id();
  node->flags = table.flags();
}

template <typename Table>
void take_weighted(Table table, Node* node) {
  node->n_inputs = 3;
  node->n_outputs = 1;
  node->inputs[0] = table.input1_id();
  node->inputs[1] = table.filter_id();
  node->inputs[2] = table.bias_id();
  node->outputs[0] = table.output_id();
  node->flags = table.flags();
}

void take_concatenate(wire::Concatenate table, uint8_t n, Node* node) {
  node->n_inputs = n;
  node->n_outputs = 1;
  node->inputs[0] = table.input1_id();
  node->inputs[1] = table.input2_id();
  node->inputs[2] = table.input3_id();
  node->inputs[3] = table.input4_id();
  node->inputs[4] = table.input5_id();
  node->outputs[0] = table.output_id();
  node->flags = table.flags();
}

void take_arg_max(wire::ArgMaxPooling2d table, Node* node) {
  node->n_inputs = 1;
  node->n_outputs = 2;
  node->inputs[0] = table.input_id();
  node->outputs[0] = table.output_value_id();
  node->outputs[1] = table.output_index_id();
  node->flags = table.flags();
}

// Nodes with one input and one result.
void take_one(const Body& body, Node* node) {
  switch (node->kind) {
    case NodeKind::StaticTranspose:
      take_unary(body.as<wire::StaticTranspose>(), node);
      break;
    case NodeKind::StaticReshape:
      take_unary(body.as<wire::StaticReshape>(), node);
      break;
    case NodeKind::StaticResizeBilinear2D:
      take_unary(body.as<wire::StaticResizeBilinear2D>(), node);
      break;
    case NodeKind::StaticConstantPad:
      take_unary(body.as<wire::StaticConstantPad>(), node);
      break;
    case NodeKind::StaticSlice:
      take_unary(body.as<wire::StaticSlice>(), node);
      break;
    case NodeKind::LeakyReLU:
      take_unary(body.as<wire::LeakyReLU>(), node);
      break;
    case NodeKind::ELU:
      take_unary(body.as<wire::ELU>(), node);
      break;
    default:
      take_unary(body.as<wire::Unary>(), node);
      break;
  }
}

bool is_product(NodeKind kind) {
  return kind == NodeKind::FullyConnected || kind == NodeKind::Conv2d ||
         kind == NodeKind::DepthwiseConv2d || kind == NodeKind::ConvTranspose2d;
}

}  // namespace

Status read_operands(Node* node, Message& message) {
  const Body& body = node->body;
  if (!body.has_xnode_union() || node->kind > NodeKind::Cos || node->kind == NodeKind::NONE) {
    return message.fail(Code::DelegateInvalidCompatibility,
                        "its kind is unknown to this runtime; update the runtime");
  }
  switch (node->kind) {
    case NodeKind::ScaledDotProductAttention:
      return message.fail(Code::NotImplemented, "no runtime implements it; export the model again");
    case NodeKind::Add:
    case NodeKind::Subtract:
    case NodeKind::Multiply:
    case NodeKind::Div:
    case NodeKind::Minimum:
    case NodeKind::Maximum:
    case NodeKind::PReLU:
    case NodeKind::BatchMatrixMultiply:
      take_binary(body.as<wire::Binary>(), node);
      return {};
    case NodeKind::FullyConnected:
      take_weighted(body.as<wire::FullyConnected>(), node);
      return {};
    case NodeKind::Conv2d:
    case NodeKind::DepthwiseConv2d:
    case NodeKind::ConvTranspose2d:
      take_weighted(body.as<wire::Convolution>(), node);
      return {};
    case NodeKind::AvgPooling2d:
    case NodeKind::MaxPooling2d:
      take_unary(body.as<wire::Pooling>(), node);
      return {};
    case NodeKind::ArgMaxPooling2d:
      take_arg_max(body.as<wire::ArgMaxPooling2d>(), node);
      return {};
    case NodeKind::Concatenate2:
      take_concatenate(body.as<wire::Concatenate>(), 2, node);
      return {};
    case NodeKind::Concatenate3:
      take_concatenate(body.as<wire::Concatenate>(), 3, node);
      return {};
    case NodeKind::Concatenate4:
      take_concatenate(body.as<wire::Concatenate>(), 4, node);
      return {};
    case NodeKind::Concatenate5:
      take_concatenate(body.as<wire::Concatenate>(), 5, node);
      return {};
    default:
      take_one(body, node);
      return {};
  }
}

bool is_optional(const Node& node, size_t i) {
  const bool is_weighted = node.kind == NodeKind::FullyConnected || node.kind == NodeKind::Conv2d ||
                           node.kind == NodeKind::DepthwiseConv2d ||
                           node.kind == NodeKind::ConvTranspose2d;
  return is_weighted && i == 2;
}

bool takes(const Node& node, size_t k, const Value& value) {
  if (is_float(value.datatype)) return true;
  const bool is_constant = value.role == Role::Constant;
  const bool has_channels = !value.quantization.scales.empty();
  switch (value.datatype) {
    case Datatype::QINT8:
      return !has_channels && value.quantization.scale > 0;
    case Datatype::QDINT8:
      if (value.role != Role::Internal) return false;
      if (node.kind == NodeKind::Convert) return k == 1;
      return is_product(node.kind) && k == 0 &&
             value.quantization.row_dims == (node.kind == NodeKind::FullyConnected ? 1 : 3);
    case Datatype::QCINT8: {
      const size_t dim = node.kind == NodeKind::DepthwiseConv2d ? 3 : 0;
      return is_product(node.kind) && k == 1 && is_constant && has_channels &&
             value.quantization.channel_dim == dim && value.quantization.group_size == 0 &&
             (node.kind != NodeKind::FullyConnected || (node.flags & kTransposeWeights) == 0);
    }
    case Datatype::QINT32:
      return is_product(node.kind) && k == 2 && is_constant && value.quantization.scale > 0;
    case Datatype::QCINT32:
      return is_product(node.kind) && k == 2 && is_constant && has_channels &&
             value.quantization.group_size == 0;
    case Datatype::QCINT4:
    case Datatype::QBINT4:
      return node.kind == NodeKind::FullyConnected && k == 1 && is_constant && has_channels &&
             value.shape.rank == 2 && value.quantization.channel_dim == 0 &&
             (value.datatype == Datatype::QBINT4) == (value.quantization.group_size > 0) &&
             (node.flags & kTransposeWeights) == 0;
    default:
      return false;
  }
}

}  // namespace rushlight::xnnpack
