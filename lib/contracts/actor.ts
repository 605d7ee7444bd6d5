/** Who acts: from the host's authentication, never from a request body. */
export interface Actor {
  id: string;
  roles?: string[];
}
