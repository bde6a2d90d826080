// DMA engine: one transfer at a time, cut into requests.
module dma_engine #(
    parameter int BITS = 13
) (
    input  logic            clk,
    input  logic            rst,
    input  logic            flr,
    input  logic            bus_master,
    input  logic [12:0]     mps,
    input  logic [12:0]     mrrs,

    input  logic            start,
    input  logic [2:0]      command,
    input  logic [63:0]     source,
    input  logic [63:0]     destination,
    input  logic [31:0]     count,
    output logic            running,
    output logic            failed,

    input  logic            msi_enable,
    input  logic [63:0]     msi_address,

    // The next request.
    output logic            request,
    output logic            is_write,
    output logic            is_msi,
    output logic [63:0]     address,
    output logic [12:0]     bytes,
    output logic [10:0]     length,
    output logic [BITS-1:0] own,
    input  logic            fits,
    input  logic            builder_idle,

    input  logic            has_free,
    output logic            allocate,
    input  logic            any_busy,
    input  logic            failure
);
    typedef enum logic [1:0] {IDLE, RUN, DRAIN, MSI} state_t;
    state_t state;
    logic [63:0]     host;
    logic [31:0]     left;
    logic [BITS-1:0] place;
    logic            to_device;
    logic            wants_msi;

    // The longest request: up to the limit in DWs, the next 4 KiB boundary and the end of the transfer.
    wire [12:0] most     = (to_device ? mrrs : mps) - 13'(host[1:0]);
    wire [12:0] to_page  = 13'd4096 - {1'b0, host[11:0]};
    wire [12:0] in_limit = most < to_page ? most : to_page;
    wire [12:0] chunk    = left < 32'(in_limit) ? left[12:0] : in_limit;

    wire is_run  = state == RUN && left != 0 && !failed && bus_master;
    assign running  = state != IDLE;
    assign is_msi   = state == MSI;
    assign is_write = is_msi || !to_device;
    assign address  = is_msi ? msi_address : host;
    assign bytes    = is_msi ? 13'd4 : chunk;
    assign length   = 11'((13'(address[1:0]) + bytes + 13'd3) >> 2);
    assign own      = place;
    assign request  = !flr && builder_idle && fits && (is_msi && wants_msi && bus_master || is_run && (is_write || has_free));
    assign allocate = request && !is_write;

    always_ff @(posedge clk) begin
        if (rst || flr) begin
            state  <= IDLE;
            failed <= 1'b0;
        end else begin
            if (failure && running) failed <= 1'b1;
            case (state)
                IDLE: if (start) begin
                    state     <= RUN;
                    failed    <= 1'b0;
                    to_device <= command[0];
                    wants_msi <= command[2];
                    host      <= command[0] ? source : destination;
                    place     <= command[0] ? destination[BITS-1:0] : source[BITS-1:0];
                    left      <= count;
                end
                RUN: if (left == 0 || failed) begin
                    state <= DRAIN;
                end else if (request) begin
                    host  <= host + 64'(chunk);
                    place <= place + BITS'(chunk);
                    left  <= left - 32'(chunk);
                end
                DRAIN: if (builder_idle && !any_busy && !failure) begin
                    state <= wants_msi && msi_enable ? MSI : IDLE;
                end
                MSI: if (request) wants_msi <= 1'b0;
                     else if (!wants_msi && builder_idle) state <= IDLE;
            endcase
        end
    end

    a_request_has_bytes: assert property (@(posedge clk) disable iff (rst) request |-> bytes != 0);
    a_one_at_a_time: assert property (@(posedge clk) disable iff (rst) request |-> builder_idle);
endmodule
