// Links with JITLink, the linker of LLVM's ORC, to addresses that are only places in the image.
// Must not leave an absolute address in it.
#include "codegen/llvm/link.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>

#include <anneal/error.h>

namespace anneal {
namespace {

namespace jitlink = llvm::jitlink;
using llvm::orc::ExecutorAddr;

// Where the linker believes the image to be; not 0, which means "no address" to it.
constexpr uint64_t kBase = uint64_t{1} << 20;
// Where it believes functions of other libraries to be: too far for a shortcut around the table of
// their addresses.
constexpr uint64_t kFarAway = uint64_t{1} << 62;

// Before the first function: sanitizers look there for what they know of a function they call.
constexpr uint64_t kMargin = 64;

struct Linking {
  CodeImage image;
  std::string problem;
};

// Lays all segments of the graph out in the image, one after the other.
class ImageMemory : public jitlink::JITLinkMemoryManager {
 public:
  explicit ImageMemory(CodeImage& image) : image_(image) {}

  void allocate(const jitlink::JITLinkDylib*, jitlink::LinkGraph& graph,
                OnAllocatedFunction on_allocated) override {
    jitlink::BasicLayout layout(graph);
    uint64_t end = kMargin;
    for (auto& [group, segment] : layout.segments()) {
      end = llvm::alignTo(end, segment.Alignment);
      segment.Addr = ExecutorAddr(kBase + end);
      end += segment.ContentSize + segment.ZeroFillSize;
    }
    image_.bytes.resize(end);
    for (auto& [group, segment] : layout.segments()) {
      segment.WorkingMem =
          reinterpret_cast<char*>(image_.bytes.data() + (segment.Addr.getValue() - kBase));
    }
    if (llvm::Error error = layout.apply()) return on_allocated(std::move(error));
    on_allocated(std::make_unique<InFlight>());
  }

  void deallocate(std::vector<FinalizedAlloc> allocations,
                  OnDeallocatedFunction on_deallocated) override {
    for (FinalizedAlloc& allocation : allocations) allocation.release();
    on_deallocated(llvm::Error::success());
  }

 private:
  struct InFlight : InFlightAlloc {
    void abandon(OnAbandonedFunction on_abandoned) override {
      on_abandoned(llvm::Error::success());
    }
    void finalize(OnFinalizedFunction on_finalized) override {
      on_finalized(FinalizedAlloc(ExecutorAddr(kBase)));
    }
  };

  CodeImage& image_;
};

class ImageContext : public jitlink::JITLinkContext {
 public:
  explicit ImageContext(Linking& linking)
      : JITLinkContext(nullptr), linking_(linking), memory_(linking.image) {}

  jitlink::JITLinkMemoryManager& getMemoryManager() override { return memory_; }

  void notifyFailed(llvm::Error error) override { linking_.problem = toString(std::move(error)); }

  void lookup(const LookupMap& symbols,
              std::unique_ptr<jitlink::JITLinkAsyncLookupContinuation> continuation) override {
    jitlink::AsyncLookupResult result;
    for (const auto& symbol : symbols) {
      result[symbol.first] = {ExecutorAddr(kFarAway), llvm::JITSymbolFlags::Exported};
    }
    continuation->run(std::move(result));
  }

  llvm::Error notifyResolved(jitlink::LinkGraph& graph) override {
    for (jitlink::Symbol* symbol : graph.defined_symbols()) {
      if (!symbol->hasName() || symbol->getScope() != jitlink::Scope::Default) continue;
      linking_.image.functions.push_back(
          {symbol->getName().str(), symbol->getAddress().getValue() - kBase});
    }
    return llvm::Error::success();
  }

  void notifyFinalized(jitlink::JITLinkMemoryManager::FinalizedAlloc allocation) override {
    allocation.release();
  }

  llvm::Error modifyPassConfig(jitlink::LinkGraph&, jitlink::PassConfiguration& passes) override {
    passes.PreFixupPasses.push_back([this](jitlink::LinkGraph& graph) { return collect(graph); });
    return llvm::Error::success();
  }

 private:
  // Notes where addresses of other libraries go, and takes those places from the linker.
  llvm::Error collect(jitlink::LinkGraph& graph) {
    for (jitlink::Block* block : graph.blocks()) {
      for (auto edge = block->edges().begin(); edge != block->edges().end();) {
        const bool is_address =
            llvm::StringRef(graph.getEdgeKindName(edge->getKind())) == "Pointer64";
        const bool leaves = edge->getTarget().isExternal();
        if (is_address != leaves) {
          return llvm::createStringError(
              llvm::inconvertibleErrorCode(),
              "code is not free of its place: " + edge->getTarget().getName().str());
        }
        if (!leaves) {
          ++edge;
          continue;
        }
        const uint64_t at = (block->getAddress() + edge->getOffset()).getValue() - kBase;
        linking_.image.imports.push_back({edge->getTarget().getName().str(), at});
        edge = block->removeEdge(edge);
      }
    }
    return llvm::Error::success();
  }

  Linking& linking_;
  ImageMemory memory_;
};

bool by_offset(const ImageSymbol& a, const ImageSymbol& b) { return a.offset < b.offset; }

}  // namespace

CodeImage link_image(std::span<const std::byte> object) {
  const llvm::StringRef bytes(reinterpret_cast<const char*>(object.data()), object.size());
  auto graph = jitlink::createLinkGraphFromObject(llvm::MemoryBufferRef(bytes, "kernel"));
  if (!graph) throw InternalError("linking kernels: " + toString(graph.takeError()));
  Linking linking;
  jitlink::link(std::move(*graph), std::make_unique<ImageContext>(linking));
  if (!linking.problem.empty()) throw InternalError("linking kernels: " + linking.problem);
  std::sort(linking.image.functions.begin(), linking.image.functions.end(), by_offset);
  std::sort(linking.image.imports.begin(), linking.image.imports.end(), by_offset);
  return std::move(linking.image);
}

}  // namespace anneal
