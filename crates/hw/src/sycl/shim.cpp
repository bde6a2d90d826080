// C interface to SYCL for `sycl/api.rs`. `make runtimes` compiles it against the headers of the wheel that contains libsycl; no SYCL compiler is
// needed, because kernels are built through OpenCL.
//
// No exception leaves it: each call returns 0, or 1 and a message in `said`.

#include <sycl/sycl.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

using Bytes = sycl::buffer<std::uint8_t, 1>;

constexpr int as_buffer = 0, as_device = 1, as_host = 2;
constexpr const char *silent = "an exception without a message";
constexpr std::size_t most_arguments = 16, argument_bytes = 64;

// Memory allocated by the runtime, freed while its queue still exists.
struct Given {
    sycl::queue queue;
    void *start;

    Given(const sycl::queue &queue, void *start, const char *what, std::size_t bytes) : queue(queue), start(start) {
        if (start == nullptr) throw std::runtime_error("no " + std::to_string(bytes) + " B of " + what + " memory");
    }
    Given(const Given &) = delete;
    ~Given() { sycl::free(start, queue); }
};

void put(char *into, std::size_t len, const std::string &text) {
    std::size_t used = std::min(len - 1, text.size());
    std::memcpy(into, text.data(), used);
    into[used] = '\0';
}

} // namespace

extern "C" {

struct LanemarkSyclSaid {
    char text[2048];
};

struct LanemarkSyclDevice {
    char name[256], platform[256], version[256], driver[256], backend[64];
    std::uint64_t memory_bytes, largest_bytes;
    std::uint32_t kind;
    std::uint8_t is_opencl, has_device_usm, has_host_usm;
};

struct LanemarkSyclQueue {
    // Asynchronous error since the last check.
    std::optional<std::string> failure;
    sycl::queue queue;
    std::vector<std::optional<sycl::kernel>> kernels;
    std::vector<Bytes> argument_buffers;
    std::vector<std::unique_ptr<Given>> argument_memory;
    std::optional<Bytes> buffer;
    std::unique_ptr<Given> device, host;
    std::size_t bytes = 0;

    explicit LanemarkSyclQueue(const sycl::device &on)
        : queue(
              on,
              [this](sycl::exception_list all) {
                  for (const std::exception_ptr &one : all) {
                      try {
                          std::rethrow_exception(one);
                      } catch (const std::exception &error) {
                          failure = error.what();
                      } catch (...) {
                          failure = silent;
                      }
                  }
              },
              sycl::property::queue::in_order{}),
          kernels(most_arguments + 1) {}
};
}

namespace {

// A kernel with its arguments and a queue of its own; waiting on the queue throws its errors.
struct Worker {
    struct Number {
        std::uint64_t value;
        bool is_long;
    };
    sycl::queue queue;
    cl_command_queue below;
    sycl::kernel kernel;
    std::vector<Bytes> arrays;
    std::vector<Number> numbers;

    Worker(const sycl::context &context, const sycl::device &device, const sycl::kernel &kernel)
        : queue(
              context,
              device,
              [](sycl::exception_list all) {
                  for (const std::exception_ptr &one : all) std::rethrow_exception(one);
              },
              sycl::property::queue::in_order{}),
          below(sycl::get_native<sycl::backend::opencl>(queue)), kernel(kernel) {}
    Worker(const Worker &) = delete;
    ~Worker() { clReleaseCommandQueue(below); }

    sycl::event submitted() {
        return queue.submit([&](sycl::handler &handler) {
            int place = 0;
            for (Bytes &array : arrays) {
                auto accessor = array.get_access<sycl::access::mode::read_write>(handler);
                handler.set_arg(place++, accessor);
            }
            for (const Number &number : numbers) {
                if (number.is_long)
                    handler.set_arg(place++, number.value);
                else
                    handler.set_arg(place++, static_cast<std::uint32_t>(number.value));
            }
            handler.single_task(kernel);
        });
    }

    // Without a flush a runtime may start a kernel only at the wait, which would serialise the kernels.
    void flush() {
        if (int status = clFlush(below)) throw std::runtime_error("clFlush: status " + std::to_string(status));
    }
};

} // namespace

extern "C" {

struct LanemarkSyclWorkers {
    sycl::context context;
    sycl::device device;
    std::vector<std::unique_ptr<Worker>> all;
    std::vector<sycl::event> events;

    explicit LanemarkSyclWorkers(const sycl::queue &queue) : context(queue.get_context()), device(queue.get_device()) {}
};
}

namespace {

template <typename F> int guarded(LanemarkSyclSaid *said, F &&body) noexcept {
    try {
        body();
        return 0;
    } catch (const std::exception &error) {
        put(said->text, sizeof said->text, error.what());
    } catch (...) {
        put(said->text, sizeof said->text, silent);
    }
    return 1;
}

std::vector<sycl::device> devices() {
    std::vector<sycl::device> all;
    for (const sycl::platform &platform : sycl::platform::get_platforms())
        for (const sycl::device &device : platform.get_devices()) all.push_back(device);
    return all;
}

sycl::event submitted(LanemarkSyclQueue *queue, std::size_t arguments, int allocation) {
    return queue->queue.submit([&](sycl::handler &handler) {
        for (std::size_t n = 0; n < arguments; ++n) {
            if (allocation == as_buffer) {
                auto accessor = queue->argument_buffers[n].get_access<sycl::access::mode::read_write>(handler);
                handler.set_arg(static_cast<int>(n), accessor);
            } else {
                handler.set_arg(static_cast<int>(n), queue->argument_memory[n]->start);
            }
        }
        handler.single_task(*queue->kernels[arguments]);
    });
}

} // namespace

extern "C" {

// Interface version, increased with every change below; compared before any other call.
std::uint32_t lanemark_sycl_shim() { return 2; }

// The SYCL version that this was compiled against.
const char *lanemark_sycl_version() {
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
    return "SYCL 2020 (libsycl " TEXT(__LIBSYCL_MAJOR_VERSION) "." TEXT(__LIBSYCL_MINOR_VERSION) ", " TEXT(__SYCL_COMPILER_VERSION) ")";
#undef TEXT
#undef TEXT_OF
}

int lanemark_sycl_count(std::size_t *count, LanemarkSyclSaid *said) {
    return guarded(said, [&] { *count = devices().size(); });
}

int lanemark_sycl_device(std::size_t number, LanemarkSyclDevice *into, LanemarkSyclSaid *said) {
    return guarded(said, [&] {
        namespace info = sycl::info::device;
        sycl::device device = devices().at(number);
        put(into->name, sizeof into->name, device.get_info<info::name>());
        put(into->platform, sizeof into->platform, device.get_platform().get_info<sycl::info::platform::name>());
        put(into->version, sizeof into->version, device.get_info<info::version>());
        put(into->driver, sizeof into->driver, device.get_info<info::driver_version>());
        std::string backend = sycl::detail::get_backend_name_no_vendor(device.get_backend()).data();
        put(into->backend, sizeof into->backend, backend);
        into->memory_bytes = device.get_info<info::global_mem_size>();
        into->largest_bytes = device.get_info<info::max_mem_alloc_size>();
        into->kind = device.is_accelerator() ? 2 : device.is_gpu() ? 1 : device.is_cpu() ? 0 : 3;
        into->is_opencl = device.get_backend() == sycl::backend::opencl;
        into->has_device_usm = device.has(sycl::aspect::usm_device_allocations);
        into->has_host_usm = device.has(sycl::aspect::usm_host_allocations);
    });
}

// Opens a queue of a device behind OpenCL; also returns the OpenCL handles of context and device, which the caller releases.
int lanemark_sycl_open(std::size_t number, LanemarkSyclQueue **queue, void **context, void **device, LanemarkSyclSaid *said) {
    return guarded(said, [&] {
        auto made = std::make_unique<LanemarkSyclQueue>(devices().at(number));
        *context = sycl::get_native<sycl::backend::opencl>(made->queue.get_context());
        *device = sycl::get_native<sycl::backend::opencl>(made->queue.get_device());
        *queue = made.release();
    });
}

void lanemark_sycl_close(LanemarkSyclQueue *queue) {
    LanemarkSyclSaid said;
    guarded(&said, [&] { queue->queue.wait(); });
    guarded(&said, [&] { delete queue; });
}

// Registers an OpenCL kernel with `arguments` address arguments; the caller keeps its own reference.
int lanemark_sycl_kernel(LanemarkSyclQueue *queue, std::uint32_t arguments, void *kernel, LanemarkSyclSaid *said) {
    return guarded(said, [&] {
        auto native = static_cast<cl_kernel>(kernel);
        queue->kernels.at(arguments) = sycl::make_kernel<sycl::backend::opencl>(native, queue->queue.get_context());
    });
}

// Allocates at least `count` kernel arguments.
int lanemark_sycl_arguments(LanemarkSyclQueue *queue, std::uint32_t count, std::int32_t allocation, LanemarkSyclSaid *said) {
    return guarded(said, [&] {
        auto &buffers = queue->argument_buffers;
        while (allocation == as_buffer && buffers.size() < count) buffers.emplace_back(sycl::range<1>(argument_bytes));
        auto &memory = queue->argument_memory;
        while (allocation != as_buffer && memory.size() < count) {
            void *start = sycl::malloc_device(argument_bytes, queue->queue);
            memory.push_back(std::make_unique<Given>(queue->queue, start, "device", argument_bytes));
        }
    });
}

// Launches `kernels` kernels with `arguments` arguments each, and waits for the last.
int lanemark_sycl_launch(
    LanemarkSyclQueue *queue, std::uint32_t kernels, std::uint32_t by_event, std::uint32_t arguments, std::int32_t allocation, LanemarkSyclSaid *said) {
    return guarded(said, [&] {
        for (std::uint32_t n = 1; n < kernels; ++n) submitted(queue, arguments, allocation);
        sycl::event last = submitted(queue, arguments, allocation);
        if (by_event)
            last.wait();
        else
            queue->queue.wait();
    });
}

// Allocates `bytes` bytes of device memory; for host allocations also sets `own` to host memory of the runtime.
int lanemark_sycl_copies(LanemarkSyclQueue *queue, std::size_t bytes, std::int32_t allocation, void **own, LanemarkSyclSaid *said) {
    return guarded(said, [&] {
        queue->buffer.reset();
        queue->device.reset();
        queue->host.reset();
        queue->bytes = bytes;
        if (allocation == as_buffer) {
            queue->buffer.emplace(sycl::range<1>(bytes));
            return;
        }
        queue->device = std::make_unique<Given>(queue->queue, sycl::malloc_device(bytes, queue->queue), "device", bytes);
        if (allocation == as_host) {
            queue->host = std::make_unique<Given>(queue->queue, sycl::malloc_host(bytes, queue->queue), "host", bytes);
            *own = queue->host->start;
        }
    });
}

// Copies between `own` and device memory, and waits.
int lanemark_sycl_copy(LanemarkSyclQueue *queue, std::uint32_t to_device, std::uint32_t by_event, std::uint8_t *own, LanemarkSyclSaid *said) {
    return guarded(said, [&] {
        sycl::event copied;
        if (queue->buffer) {
            copied = queue->queue.submit([&](sycl::handler &handler) {
                if (to_device)
                    handler.copy(own, queue->buffer->get_access<sycl::access::mode::write>(handler));
                else
                    handler.copy(queue->buffer->get_access<sycl::access::mode::read>(handler), own);
            });
        } else {
            void *there = queue->device->start;
            copied = to_device ? queue->queue.memcpy(there, own, queue->bytes) : queue->queue.memcpy(own, there, queue->bytes);
        }
        if (by_event)
            copied.wait();
        else
            queue->queue.wait();
    });
}

// Asynchronous error since the last call.
int lanemark_sycl_failed(LanemarkSyclQueue *queue, LanemarkSyclSaid *said) {
    return guarded(said, [&] {
        queue->queue.throw_asynchronous();
        if (!queue->failure) return;
        std::string failure = *std::exchange(queue->failure, std::nullopt);
        throw std::runtime_error(failure);
    });
}

// Creates an empty set of kernels on the device of a queue; it does not use the queue afterwards.
int lanemark_sycl_workers(LanemarkSyclQueue *queue, LanemarkSyclWorkers **workers, LanemarkSyclSaid *said) {
    return guarded(said, [&] { *workers = new LanemarkSyclWorkers(queue->queue); });
}

void lanemark_sycl_no_workers(LanemarkSyclWorkers *workers) {
    LanemarkSyclSaid said;
    for (auto &worker : workers->all) guarded(&said, [&] { worker->queue.wait(); });
    guarded(&said, [&] { delete workers; });
}

// Adds an OpenCL kernel whose arguments are arrays of these lengths, then numbers of 4 or 8 bytes; the caller keeps its own reference.
int lanemark_sycl_worker(
    LanemarkSyclWorkers *workers, void *kernel, const std::size_t *lengths, std::size_t arrays, const std::uint64_t *numbers,
    const std::uint8_t *bytes, std::size_t count, LanemarkSyclSaid *said) {
    return guarded(said, [&] {
        auto native = sycl::make_kernel<sycl::backend::opencl>(static_cast<cl_kernel>(kernel), workers->context);
        auto made = std::make_unique<Worker>(workers->context, workers->device, native);
        for (std::size_t n = 0; n < arrays; ++n) made->arrays.emplace_back(sycl::range<1>(lengths[n]));
        for (std::size_t n = 0; n < count; ++n) made->numbers.push_back({numbers[n], bytes[n] == 8});
        workers->all.push_back(std::move(made));
    });
}

// Copies `bytes` bytes between `own` and the start of an array, and waits.
int lanemark_sycl_bring(
    LanemarkSyclWorkers *workers, std::size_t worker, std::size_t array, std::uint32_t to_device, std::uint8_t *own, std::size_t bytes,
    LanemarkSyclSaid *said) {
    return guarded(said, [&] {
        Worker &one = *workers->all.at(worker);
        Bytes &buffer = one.arrays.at(array);
        if (bytes > buffer.size()) throw std::runtime_error("the copy is longer than the array");
        sycl::range<1> part(bytes);
        one.queue
            .submit([&](sycl::handler &handler) {
                if (to_device)
                    handler.copy(own, sycl::accessor<std::uint8_t, 1, sycl::access::mode::write>(buffer, handler, part));
                else
                    handler.copy(sycl::accessor<std::uint8_t, 1, sycl::access::mode::read>(buffer, handler, part), own);
            })
            .wait();
        one.queue.throw_asynchronous();
    });
}

// Launches all kernels, each on its own queue, and waits for all of them.
int lanemark_sycl_compute(LanemarkSyclWorkers *workers, std::uint32_t by_event, LanemarkSyclSaid *said) {
    return guarded(said, [&] {
        std::vector<sycl::event> &events = workers->events;
        events.clear();
        for (auto &worker : workers->all) {
            events.push_back(worker->submitted());
            worker->flush();
        }
        if (by_event) {
            for (sycl::event &event : events) event.wait_and_throw();
        } else {
            for (auto &worker : workers->all) worker->queue.wait_and_throw();
        }
    });
}
}
