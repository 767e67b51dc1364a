// A Vulkan driver that computes on the CPU, as `./dev webgpu` installs one: for machines without a
// GPU, and slow. Used only by those who ask for it, by the name "software".
#pragma once

#include <string>
#include <string_view>

namespace anneal::webgpu {

constexpr std::string_view kSoftware = "software";  // among names of adapters

// Its manifest; empty where none is installed.
std::string software_driver();
// Makes it the only driver that Vulkan finds, with its loader where the system has none. Before the
// first GPU of the process is asked for; without an installed one nothing changes.
void use_software_driver();

}  // namespace anneal::webgpu
