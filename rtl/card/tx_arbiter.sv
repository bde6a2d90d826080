// Arbiter of the TLPs of the card. A TLP that is offered is sent to its end. If a completion and a request
// wait, the completion is first: it can pass a write that no register has reported (rtl/README.md, Order of TLPs).
module tx_arbiter (
    input  logic        clk,
    input  logic        rst,

    input  logic [31:0] completion_data,
    input  logic        completion_valid,
    input  logic        completion_last,
    output logic        completion_ready,
    output logic        completion_granted,

    input  logic [31:0] request_data,
    input  logic        request_valid,
    input  logic        request_last,
    output logic        request_ready,
    output logic        request_granted,

    output logic [31:0] tx_data,
    output logic        tx_valid,
    output logic        tx_last,
    input  logic        tx_ready
);
    logic locked;        // a TLP is offered and not yet sent
    logic holds_request; // it is a request

    wire is_request = locked ? holds_request : !completion_valid;

    assign tx_data  = is_request ? request_data : completion_data;
    assign tx_valid = is_request ? request_valid : completion_valid;
    assign tx_last  = is_request ? request_last : completion_last;
    assign completion_ready   = tx_ready && !is_request;
    assign request_ready      = tx_ready && is_request;
    assign completion_granted = completion_valid && !is_request;
    assign request_granted    = request_valid && is_request;

    always_ff @(posedge clk) begin
        if (rst) begin
            locked <= 1'b0;
        end else if (tx_valid) begin
            locked        <= !(tx_ready && tx_last);
            holds_request <= is_request;
        end
    end

    logic ran;
    always_ff @(posedge clk) begin
        ran <= !rst;
        if (!rst && ran && $past(tx_valid && !tx_ready))
            a_stable: assert (tx_valid && $stable(tx_data) && $stable(tx_last));
    end
endmodule
