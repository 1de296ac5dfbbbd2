// Kernels that need many registers: tiled matrix multiply, n-body, FFT, lattice, sorting network.
template<int TM,int TN> __device__ void sg(const float*A,const float*B,float*C,int n){
  __shared__ float As[8][16*TM], Bs[8][16*TN];
  float acc[TM][TN]={};
  int tx=threadIdx.x%16,ty=threadIdx.x/16;
  for(int k=0;k<n;k+=8){
    for(int i=threadIdx.x;i<8*16*TM;i+=256) As[i%8][i/8]=A[(blockIdx.y*16*TM+i/8)*n+k+i%8];
    for(int i=threadIdx.x;i<8*16*TN;i+=256) Bs[i/(16*TN)][i%(16*TN)]=B[(k+i/(16*TN))*n+blockIdx.x*16*TN+i%(16*TN)];
    __syncthreads();
    #pragma unroll
    for(int q=0;q<8;q++){ float a[TM],b[TN];
      #pragma unroll
      for(int i=0;i<TM;i++)a[i]=As[q][ty*TM+i];
      #pragma unroll
      for(int i=0;i<TN;i++)b[i]=Bs[q][tx*TN+i];
      #pragma unroll
      for(int i=0;i<TM;i++)
      #pragma unroll
      for(int j=0;j<TN;j++)acc[i][j]+=a[i]*b[j]; }
    __syncthreads();
  }
  for(int i=0;i<TM;i++)for(int j=0;j<TN;j++)C[(blockIdx.y*16*TM+ty*TM+i)*n+blockIdx.x*16*TN+tx*TN+j]=acc[i][j];
}
__global__ void sg88(const float*A,const float*B,float*C,int n){sg<8,8>(A,B,C,n);}
__global__ void sg44(const float*A,const float*B,float*C,int n){sg<4,4>(A,B,C,n);}
__global__ void sg84(const float*A,const float*B,float*C,int n){sg<8,4>(A,B,C,n);}
__global__ void nbody(const double*p,double*a,int n){
  int i=blockIdx.x*blockDim.x+threadIdx.x; double mx=p[4*i],my=p[4*i+1],mz=p[4*i+2],x=0,y=0,z=0;
  for(int j=0;j<n;j++){const double*o=p+4*j;double dx=o[0]-mx,dy=o[1]-my,dz=o[2]-mz;double r=dx*dx+dy*dy+dz*dz+1e-3;double s=o[3]/(r*sqrt(r));x+=dx*s;y+=dy*s;z+=dz*s;}
  a[4*i]=x;a[4*i+1]=y;a[4*i+2]=z;}
__global__ void fft16(float2*d){ float2 v[16]; int t=threadIdx.x;
  #pragma unroll
  for(int i=0;i<16;i++)v[i]=d[t+i*256];
  #pragma unroll
  for(int s=1;s<16;s*=2)
  #pragma unroll
  for(int i=0;i<16;i++) if(!(i&s)){float2 a=v[i],b=v[i|s];float c=__cosf(t*s*0.1f+i),q=__sinf(t*s*0.1f+i);float2 w=make_float2(b.x*c-b.y*q,b.x*q+b.y*c);v[i]=make_float2(a.x+w.x,a.y+w.y);v[i|s]=make_float2(a.x-w.x,a.y-w.y);}
  #pragma unroll
  for(int i=0;i<16;i++)d[t*16+i]=v[i];}
__global__ void lbm(const float*f,float*g,int n){int i=blockIdx.x*blockDim.x+threadIdx.x;float r=0,u[19];
  #pragma unroll
  for(int k=0;k<19;k++){u[k]=f[i+k*n];r+=u[k];}
  float vx=u[1]-u[2]+u[7]-u[8]+u[9]-u[10],vy=u[3]-u[4]+u[11]-u[12],vz=u[5]-u[6]+u[13]-u[14]; vx/=r;vy/=r;vz/=r;
  #pragma unroll
  for(int k=0;k<19;k++)g[i+k*n]=u[k]+0.6f*(r*(1.f/19+k*vx+vy*vz*k+vx*vx*(k%3))-u[k]);}
__global__ void sort16(int*d){int v[16];int t=threadIdx.x*16;
 #pragma unroll
 for(int i=0;i<16;i++)v[i]=d[t+i];
 #pragma unroll
 for(int a=0;a<16;a++)
 #pragma unroll
 for(int b=a&1;b<15;b+=2)if(v[b]>v[b+1]){int q=v[b];v[b]=v[b+1];v[b+1]=q;}
 #pragma unroll
 for(int i=0;i<16;i++)d[t+i]=v[i];}
